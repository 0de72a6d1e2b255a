//! The JSON that leaves relay. A change of shape is a new version beside the old one.

pub mod v1;
