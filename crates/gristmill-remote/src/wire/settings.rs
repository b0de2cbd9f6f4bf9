//! Settings in the words in which they are stored.

use gristmill_core::{Settings, SettingsPatch};
use gristmill_text::settings;
use serde_json::Value;

use super::{Fault, Read, Wire};

impl Wire for SettingsPatch {
    fn write(&self) -> Value {
        settings::write(self)
    }

    fn read(value: Value) -> Read<Self> {
        if !value.is_object() {
            return Err(Fault::new("it is no object"));
        }
        settings::read(&value).map_err(|error| Fault::new(error.whole()))
    }
}

impl Wire for Settings {
    fn write(&self) -> Value {
        settings::whole(self).write()
    }

    fn read(value: Value) -> Read<Self> {
        let mut whole = Settings::default();
        SettingsPatch::read(value)?.apply_to(&mut whole);
        Ok(whole)
    }
}
