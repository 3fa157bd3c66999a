"""The image, as far as it can be made and tried without a base image."""
