"""LAW: pure; a patch and an object make a new object that shares what the patch left alone."""
