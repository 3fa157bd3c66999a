"""The pages as a site: what is read in the repository, with links that hold there."""
