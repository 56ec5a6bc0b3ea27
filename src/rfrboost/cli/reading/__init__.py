"""Tables in files, as people have them: bytes, delimited text, other formats, and columns."""
