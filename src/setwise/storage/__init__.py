"""Files that are whole or absent, archives of arrays with a header, and how much may be unpacked."""
