//! Everything of relay that listens: MCP over stdio and HTTP, and the page. Async stops at this crate's border.
//!
//! Nothing listens yet: every command opens the store, acts and exits. The crate stands here so that the direction of
//! dependencies is fixed before its code arrives.
