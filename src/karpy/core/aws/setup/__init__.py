"""The AWS resources that Karpy needs, as values, CloudFormation, Terraform or commands."""
