//! Settings as ethtool asks for them, with the names and units of its manual page.
