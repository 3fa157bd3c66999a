"""What an AWS account needs for Karpy, as values, and as CloudFormation, Terraform or commands."""
