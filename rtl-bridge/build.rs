//! Verilates the one top that is linked in, the 1/1 card, and compiles the cxx glue; nothing else is C++.

#[path = "build/mod.rs"]
#[allow(dead_code)] // shared with the crate, which uses the rest of it
mod build;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use build::library::{Builder, Kind, LINKED_NAME};
use build::sources::{ShellShape, TopSpec};
use build::toolchain::Toolchain;

fn main() {
    let manifest = PathBuf::from(env("CARGO_MANIFEST_DIR"));
    for watched in ["build.rs", "build", "cpp", "rtl", "src/ffi.rs"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    for variable in ["VERILATOR_ROOT", "CXX"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let cache = target_dir(&manifest).join("verilated");
    println!("cargo::rustc-env=ONIC_DEFAULT_CACHE={}", cache.display());
    if let Err(error) = link_card(&manifest, &cache) {
        // One directive a line, or cargo would show the first line only.
        for line in error.to_string().lines() {
            println!("cargo::error={line}");
        }
        return;
    }
    cxx_build::bridge("src/ffi.rs").file("cpp/bridge.cc").std("c++17").compile("onic_rtl_glue");
    for library in ["z", "lz4", "stdc++"] {
        println!("cargo::rustc-link-lib={library}");
    }
}

fn link_card(manifest: &Path, cache: &Path) -> Result<(), build::BuildError> {
    let workspace = manifest.parent().unwrap_or(manifest);
    let toolchain = Toolchain::discover(workspace)?;
    let builder = Builder {
        toolchain: &toolchain,
        cpp_dir: manifest.join("cpp"),
        cache: cache.to_path_buf(),
        jobs: env("NUM_JOBS").parse().unwrap_or(1),
        progress: &|_, _, _| {},
    };
    let library = builder.build(&TopSpec::card(manifest, &ShellShape::default()), Kind::Linked)?;
    // Built anew when somebody removes it. Cargo runs a build script again when a watched file is younger than the script's
    // last start, which this one always would be; its name tells its contents, so its age may say nothing.
    age(&library.path);
    println!("cargo::rerun-if-changed={}", library.path.display());
    println!("cargo::rustc-link-search=native={}", cache.join(&library.hash).display());
    println!("cargo::rustc-link-lib=static={LINKED_NAME}");
    Ok(())
}

/// Give a file a time long ago. Where that is refused, the next build runs this script once more, which finds the library.
fn age(path: &Path) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
    if let Ok(file) = File::options().write(true).open(path) {
        let _ = file.set_modified(long_ago);
    }
}

/// The `target` that all profiles share: the ancestor of OUT_DIR that cargo marked as a cache, which holds for
/// `--target-dir` and `CARGO_TARGET_DIR` alike.
fn target_dir(manifest: &Path) -> PathBuf {
    let out_dir = PathBuf::from(env("OUT_DIR"));
    let marked = out_dir.ancestors().skip(1).filter(|dir| dir.join("CACHEDIR.TAG").is_file()).last();
    marked.map_or_else(|| manifest.join("../target"), Path::to_path_buf)
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
