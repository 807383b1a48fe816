//! What the tests share: settings, and how a test that can't run says so.

use std::io::Write;
use std::sync::Once;

use xdp_oracle::kernel;

/// The kernel is named once.
static RELEASE: Once = Once::new();

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

/// May the test go on, and is the kernel new enough? If not, it says why.
pub fn permitted(name: &str, since: kernel::Version) -> bool {
    let (release, version) = kernel::release().unwrap_or_else(|error| panic!("{error}"));
    RELEASE.call_once(|| aloud(&format!("xdp-oracle: kernel {release}")));
    let why = match kernel::permitted() {
        Err(error) => format!("bpf(2) not permitted: {error}"),
        Ok(()) if version < since => format!("needs kernel {}.{}, not {release}", since.0, since.1),
        Ok(()) => return true,
    };
    assert!(std::env::var_os("XDP_ORACLE_REQUIRE").is_none(), "{name}: {why}, and XDP_ORACLE_REQUIRE is set");
    aloud(&format!("xdp-oracle: {name}: SKIPPED: {why}"));
    false
}
