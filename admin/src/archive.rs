//! What left the store: where it lies, what it looks like there, and how it is read again.

pub mod place;

use self::place::Place;
use shared::settings::{AuditSettings, BadSettings};

/// The archive, as all requests and workers share it.
#[derive(Debug)]
pub struct Archive {
    place: Place,
}

impl Archive {
    /// The archive that the settings name.
    ///
    /// # Errors
    /// [`BadSettings`] names the key.
    pub fn of(settings: &AuditSettings) -> Result<Self, BadSettings> {
        Ok(Self {
            place: Place::of(settings)?,
        })
    }

    /// Where it lies.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }
}
