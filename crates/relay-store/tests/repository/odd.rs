//! Repositories that are not as one thinks of them.
