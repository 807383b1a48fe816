//! From `OBJ[:PROG]` to a program that is ready to run.

use std::path::{Path, PathBuf};

use xdp_vm::{LoadError, Loader, ObjectError, Vm, XdpObject};

use super::maps::{self, MapSetting, SettingError};

/// An object file and, if it has several, the program: `OBJ[:PROG]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectSpec {
    /// The file.
    pub path: PathBuf,
    /// The program's function.
    pub program: Option<String>,
}

impl From<&str> for ObjectSpec {
    /// What follows the last `:` is the program, if it can be a name in C.
    fn from(text: &str) -> Self {
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        match text.rsplit_once(':').filter(|(path, program)| !path.is_empty() && is_name(program)) {
            Some((path, program)) => Self { path: path.into(), program: Some(program.into()) },
            None => Self { path: text.into(), program: None },
        }
    }
}

/// What a program is loaded with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// CPUs that the program may find itself on.
    pub cpus: u32,
    /// Where its random numbers begin.
    pub seed: u64,
    /// Entries of maps, by name.
    pub map_sizes: Vec<(String, u32)>,
    /// Entries that are there before the first frame.
    pub map_settings: Vec<MapSetting>,
}

/// An object that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file can't be read.
    #[error("{}: {cause}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// It is no object of BPF's.
    #[error("{0}")]
    Object(ObjectError),
    /// The program can't be loaded.
    #[error("{0}")]
    Load(LoadError),
    /// An entry can't be set.
    #[error("{0}")]
    Map(#[from] SettingError),
}

/// A loaded program.
pub struct Subject {
    /// It and its maps.
    pub vm: Vm,
    /// Its name.
    pub program: String,
}

/// An object file's bytes, and the name for messages.
pub(crate) fn read(path: &Path) -> Result<(String, Vec<u8>), OpenError> {
    let bytes = std::fs::read(path).map_err(|cause| OpenError::Read { path: path.into(), cause })?;
    Ok((path.display().to_string(), bytes))
}

impl Subject {
    /// Load the program and set the maps' entries.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn load(spec: &ObjectSpec, setup: &Setup) -> Result<Self, OpenError> {
        let (name, bytes) = read(&spec.path)?;
        let object = XdpObject::parse(&name, &bytes).map_err(OpenError::Object)?;
        let mut loader = Loader::new().cpus(setup.cpus).seed(setup.seed);
        if let Some(program) = &spec.program {
            loader = loader.program(program);
        }
        for (map, entries) in &setup.map_sizes {
            loader = loader.max_entries(map, *entries);
        }
        let mut vm = loader.load(&object).map_err(OpenError::Load)?;
        for setting in &setup.map_settings {
            maps::set(&mut vm, setting)?;
        }
        let program = vm.programs().first().map(|program| program.name.clone()).unwrap_or_default();
        Ok(Self { vm, program })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_follows_the_last_colon() {
        let spec = ObjectSpec::from("dir/a.o:xdp_main");
        assert_eq!(spec, ObjectSpec { path: "dir/a.o".into(), program: Some("xdp_main".into()) });
        assert_eq!(ObjectSpec::from("a.o").program, None);
        assert_eq!(ObjectSpec::from("odd:na-me.o").path, PathBuf::from("odd:na-me.o"));
    }
}
