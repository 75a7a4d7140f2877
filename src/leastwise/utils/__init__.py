"""Arrays of other libraries, hashing, memory, random numbers, files, text: used by every other package."""
