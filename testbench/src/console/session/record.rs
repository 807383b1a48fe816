//! The frames that came out of a session, for somebody who compares them.

use super::Session;
use crate::outcome::{Delivered, Sent};

/// Frames that came out, each kind in the order in which it did.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Frames that the drivers handed up.
    pub delivered: Vec<Delivered>,
    /// Frames that left at the ports.
    pub sent: Vec<Sent>,
}

impl Session {
    /// Keep the frames that come out from here on, until [`Session::take_record`] asks for them.
    pub fn record(&mut self) {
        self.record.get_or_insert_default();
    }

    /// What has come out since the last time. Nothing, unless the session was told to [`Session::record`].
    pub fn take_record(&mut self) -> Record {
        self.collect();
        self.record.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
