"""AWS over HTTP on this machine: moto, and what moto lacks; it needs the extra aws-fake."""
