"""LAW: pure; a patch and an object make a new object, which shares all unchanged parts."""
