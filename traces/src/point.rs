//! Where in the card a frame was seen: a port, a function, or the place where it was dropped.

use std::fmt;
use std::str::FromStr;

/// A place in the card; one capture interface each.
///
/// The text form is the interface name in captures and the first word of a golden line: `port0`, `fn1`,
/// `port0.dropped`, `fn1.dropped`. The order of the variants is the order of interfaces and of golden groups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Point {
    /// The wire of an Ethernet port.
    Port(u8),
    /// Host memory of a PCIe function.
    Function(u8),
    /// Dropped in a port's MAC or packet adapter.
    PortDropped(u8),
    /// Dropped in a function of the QDMA subsystem, or by its driver.
    FunctionDropped(u8),
    /// An interface of a capture that isn't ours, by its number.
    Interface(u32),
}

impl Point {
    /// Every point of a card of this shape, in order.
    #[must_use]
    pub fn of_card(ports: u8, functions: u8) -> Vec<Point> {
        let ports = 0..ports;
        let functions = 0..functions;
        (ports.clone().map(Point::Port))
            .chain(functions.clone().map(Point::Function))
            .chain(ports.map(Point::PortDropped))
            .chain(functions.map(Point::FunctionDropped))
            .collect()
    }

    /// A frame seen here went no further.
    #[must_use]
    pub fn is_drop(self) -> bool {
        matches!(self, Point::PortDropped(_) | Point::FunctionDropped(_))
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Point::Port(n) => format!("port{n}"),
            Point::Function(n) => format!("fn{n}"),
            Point::PortDropped(n) => format!("port{n}.dropped"),
            Point::FunctionDropped(n) => format!("fn{n}.dropped"),
            Point::Interface(n) => format!("interface{n}"),
        };
        f.pad(&text)
    }
}

/// The text is no [`Point`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no place in a card: expected portN, fnN, portN.dropped, fnN.dropped or interfaceN")]
pub struct UnknownPoint(pub String);

impl FromStr for Point {
    type Err = UnknownPoint;

    fn from_str(text: &str) -> Result<Self, UnknownPoint> {
        let unknown = || UnknownPoint(text.to_owned());
        let (head, dropped) = match text.strip_suffix(".dropped") {
            Some(head) => (head, true),
            None => (text, false),
        };
        let digits = head.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let kind = &head[..head.len() - digits.len()];
        let number: u32 = digits.parse().map_err(|_| unknown())?;
        let small = u8::try_from(number).map_err(|_| unknown());
        let point = match (kind, dropped) {
            ("port", false) => Point::Port(small?),
            ("fn", false) => Point::Function(small?),
            ("port", true) => Point::PortDropped(small?),
            ("fn", true) => Point::FunctionDropped(small?),
            ("interface", false) => Point::Interface(number),
            _ => return Err(unknown()),
        };
        // `port00` and `port+1` would give one place two names.
        if point.to_string() == text { Ok(point) } else { Err(unknown()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_survives_its_text() {
        for point in Point::of_card(2, 4).into_iter().chain([Point::Interface(70_000)]) {
            assert_eq!(point.to_string().parse(), Ok(point));
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "port", "port256", "port00", "fn-1", "interface1.dropped", "Port0", "port0.lost"] {
            assert_eq!(text.parse::<Point>(), Err(UnknownPoint(text.to_owned())));
        }
    }
}
