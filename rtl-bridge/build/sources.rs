//! A top and what it is made of: file list, parameters, defines.
//!
//! File lists are Verilator's `.f` files, kept to what we can hash and explain: one source file a line, `+incdir+DIR`,
//! `-f OTHER.f`, `#` and `//` comments; paths are relative to the list they stand in.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::BuildError;

/// Which coverage the library counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Coverage {
    /// `cover` statements only: as good as free. The normal build.
    #[default]
    User,
    /// Lines and toggles too: 0.5 to 0.64 of the speed.
    Full,
}

/// What to build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopSpec {
    /// Name of the top module.
    pub top_module: String,
    /// The list of its sources.
    pub file_list: PathBuf,
    /// Parameters of the top, by name; a value as Verilator's `-G` takes it.
    pub parameters: Vec<(String, String)>,
    /// Preprocessor defines.
    pub defines: Vec<String>,
    /// Delays and events in the RTL (`--timing`); ours has none.
    pub timing: bool,
    /// Coverage.
    pub coverage: Coverage,
}

impl TopSpec {
    /// The top `top_module` of `file_list`, with its parameters as they stand.
    pub fn new(top_module: &str, file_list: impl Into<PathBuf>) -> TopSpec {
        TopSpec {
            top_module: top_module.to_string(),
            file_list: file_list.into(),
            parameters: Vec::new(),
            defines: Vec::new(),
            timing: false,
            coverage: Coverage::User,
        }
    }

    /// With one parameter set.
    pub fn parameter(mut self, name: &str, value: impl std::fmt::Display) -> TopSpec {
        self.parameters.push((name.to_string(), value.to_string()));
        self
    }

    /// With one define.
    pub fn define(mut self, name: &str) -> TopSpec {
        self.defines.push(name.to_string());
        self
    }
}

/// Parameters of our shell, `rtl/onic_shell.f`, and of the card around it, `rtl/onic_card.f`. The card of the default is
/// linked in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ShellShape {
    /// PCIe functions, 1…4.
    pub functions: u8,
    /// Ethernet ports, 1…2.
    pub ports: u8,
    /// `MAX_PKT_LEN`, with FCS: how long a frame the buffers hold. The limit itself is a pin (`cfg_max_pkt_len`).
    pub max_pkt_len: u16,
    /// With the faults of the alarm tests compiled in, chosen by `+onic_fault=N`.
    pub faults: bool,
    /// Lines and toggles are counted too.
    pub full_coverage: bool,
}

impl Default for ShellShape {
    fn default() -> ShellShape {
        ShellShape { functions: 1, ports: 1, max_pkt_len: 9600, faults: false, full_coverage: false }
    }
}

/// Parameters of the QDMA engine alone, `rtl/onic_qdma.f`. The default is what a card has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EngineShape {
    /// Queues, a power of two, 2…2048.
    pub queues: u16,
    /// PCIe functions, 1…4.
    pub functions: u8,
    /// With the faults of the alarm tests compiled in, chosen by `+onic_fault=N`.
    pub faults: bool,
}

impl Default for EngineShape {
    fn default() -> EngineShape {
        EngineShape { queues: 512, functions: 1, faults: false }
    }
}

impl TopSpec {
    /// Our shell. `crate_dir` is the folder of rtl-bridge.
    pub fn shell(crate_dir: &Path, shape: &ShellShape) -> TopSpec {
        TopSpec::with_shell("onic_shell", crate_dir, shape)
    }

    /// Our shell and our QDMA engine.
    pub fn card(crate_dir: &Path, shape: &ShellShape) -> TopSpec {
        TopSpec::with_shell("onic_card", crate_dir, shape)
    }

    /// Our QDMA engine.
    pub fn engine(crate_dir: &Path, shape: &EngineShape) -> TopSpec {
        let spec = TopSpec::new("qdma_engine", crate_dir.join("rtl/onic_qdma.f"))
            .parameter("NUM_QUEUE", shape.queues)
            .parameter("NUM_PHYS_FUNC", shape.functions);
        if shape.faults { spec.define("ONIC_FAULTS") } else { spec }
    }

    fn with_shell(top_module: &str, crate_dir: &Path, shape: &ShellShape) -> TopSpec {
        let mut spec = TopSpec::new(top_module, crate_dir.join(format!("rtl/{top_module}.f")))
            .parameter("NUM_PHYS_FUNC", shape.functions)
            .parameter("NUM_CMAC_PORT", shape.ports)
            .parameter("MAX_PKT_LEN", shape.max_pkt_len);
        if shape.faults {
            spec = spec.define("ONIC_FAULTS");
        }
        if shape.full_coverage {
            spec.coverage = Coverage::Full;
        }
        spec
    }
}

/// A file list, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Folder that the paths below are relative to: the top list's. Verilator runs there, so that messages and
    /// coverage name files by short paths and no machine's folder enters what is built.
    pub base: PathBuf,
    /// Source files in order, relative to `base`.
    pub files: Vec<PathBuf>,
    /// Include folders, relative to `base`.
    pub include_dirs: Vec<PathBuf>,
    /// Every file that the outcome may depend on, relative to `base`: sources, lists, and all of the include folders.
    pub inputs: BTreeSet<PathBuf>,
}

impl Sources {
    /// Read a file list and those that it names.
    ///
    /// # Errors
    /// [`BuildError::Sources`] for a file that isn't there or a line of another kind, [`BuildError::Io`].
    pub fn read(file_list: &Path) -> Result<Sources, BuildError> {
        let base = file_list.parent().unwrap_or(Path::new(".")).to_path_buf();
        let name = file_list.file_name().map(PathBuf::from).unwrap_or_default();
        let mut sources = Sources { base, ..Sources::default() };
        sources.read_list(&name, 0)?;
        Ok(sources)
    }

    fn read_list(&mut self, list: &Path, depth: usize) -> Result<(), BuildError> {
        let path = self.base.join(list);
        if depth > 8 {
            return Err(BuildError::Sources(format!("{}: file lists nested deeper than 8", path.display())));
        }
        let text = std::fs::read_to_string(&path).map_err(BuildError::io(&path))?;
        self.inputs.insert(list.to_path_buf());
        let folder = list.parent().unwrap_or(Path::new(""));
        for (number, line) in text.lines().enumerate() {
            let at = |why: &str| BuildError::Sources(format!("{}:{}: {why}", path.display(), number + 1));
            let line = line.split('#').next().unwrap_or("").split("//").next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            if let Some(dir) = line.strip_prefix("+incdir+") {
                self.add_include_dir(normal(&folder.join(dir)))?;
            } else if let Some(other) = line.strip_prefix("-f ") {
                self.read_list(&normal(&folder.join(other.trim())), depth + 1)?;
            } else if line.starts_with(['+', '-']) {
                return Err(at(&format!("`{line}`: only files, +incdir+DIR and -f LIST may stand here")));
            } else {
                let file = normal(&folder.join(line));
                if !self.base.join(&file).is_file() {
                    return Err(at(&format!("{} is not there", file.display())));
                }
                self.inputs.insert(file.clone());
                self.files.push(file);
            }
        }
        Ok(())
    }

    fn add_include_dir(&mut self, dir: PathBuf) -> Result<(), BuildError> {
        let path = self.base.join(&dir);
        for entry in std::fs::read_dir(&path).map_err(BuildError::io(&path))? {
            let entry = entry.map_err(BuildError::io(&path))?;
            if entry.path().is_file() {
                self.inputs.insert(dir.join(entry.file_name()));
            }
        }
        self.include_dirs.push(dir);
        Ok(())
    }
}

/// `a/../b/./c` as `b/c`, so that one file has one name.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    if out.as_os_str().is_empty() { PathBuf::from(".") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("temporary folder");
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("has a parent")).expect("folder");
            std::fs::write(path, text).expect("file");
        }
        dir
    }

    #[test]
    fn lists_nest_and_paths_are_relative_to_their_list() {
        let dir = tree(&[
            ("top.f", "// the shell\n+incdir+inc\n-f sub/part.f\ntop.sv # last\n"),
            ("sub/part.f", "a.sv\n../b.sv\n"),
            ("sub/a.sv", ""),
            ("b.sv", ""),
            ("top.sv", ""),
            ("inc/macros.svh", ""),
        ]);
        let sources = Sources::read(&dir.path().join("top.f")).expect("reads");
        assert_eq!(sources.files, ["sub/a.sv", "b.sv", "top.sv"].map(PathBuf::from));
        assert_eq!(sources.include_dirs, [PathBuf::from("inc")]);
        let inputs: Vec<_> = sources.inputs.iter().map(|p| p.to_str().expect("ASCII")).collect();
        assert_eq!(inputs, ["b.sv", "inc/macros.svh", "sub/a.sv", "sub/part.f", "top.f", "top.sv"]);
    }

    #[test]
    fn a_bad_line_is_named_with_its_place() {
        let dir = tree(&[("top.f", "\nno.sv\n"), ("flag.f", "--trace\n"), ("self.f", "-f self.f\n")]);
        let error = |list: &str| Sources::read(&dir.path().join(list)).expect_err("refused").to_string();
        assert!(error("top.f").contains("top.f:2: no.sv is not there"), "{}", error("top.f"));
        assert!(error("flag.f").contains("flag.f:1: `--trace`"), "{}", error("flag.f"));
        assert!(error("self.f").contains("nested"), "{}", error("self.f"));
    }
}
