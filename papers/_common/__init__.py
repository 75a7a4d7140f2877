"""What the papers' experiments share: data, timing, the machine, tables, pictures and files."""
