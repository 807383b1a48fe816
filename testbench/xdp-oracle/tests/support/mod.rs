//! What the tests share: settings, and how a test that can't run says so.

use std::io::Write;

use xdp_oracle::kernel;

/// A number from the environment.
pub fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(number.unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

/// To standard error itself, which the test harness does not hold back.
pub fn aloud(line: &str) {
    // A line that nobody can read is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// May the test go on? If not, it says why.
pub fn permitted(name: &str) -> bool {
    let Err(error) = kernel::permitted() else { return true };
    let required = std::env::var_os("XDP_ORACLE_REQUIRE").is_some();
    assert!(!required, "{name}: bpf(2) not permitted: {error}, and XDP_ORACLE_REQUIRE is set");
    aloud(&format!("xdp-oracle: {name}: SKIPPED: bpf(2) not permitted: {error}"));
    false
}
