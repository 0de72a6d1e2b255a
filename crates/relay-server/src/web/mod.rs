//! The human's page: what the bus shows to a person in a browser, and what they decide there.

pub mod frame;
