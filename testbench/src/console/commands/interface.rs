//! `up` and `down`.

use super::{Call, Spec, interface_of};
use crate::console::{CommandError, Console, Interface};

pub(super) const UP: Spec = Spec {
    name: "up",
    usage: &["up [DEV]"],
    about: "Start the queues of DEV, or of every interface",
    more: "",
    background: false,
    run: |console, call| each(call, console)?.into_iter().try_for_each(|dev| Ok(console.session.up(dev)?)).map(quietly),
};

pub(super) const DOWN: Spec = Spec {
    name: "down",
    usage: &["down [DEV]"],
    about: "Stop the queues of DEV, or of every interface",
    more: "Whatever is under way: frames that come meanwhile are counted drops.",
    background: false,
    run: |console, call| {
        each(call, console)?.into_iter().try_for_each(|dev| Ok(console.session.down(dev)?)).map(quietly)
    },
};

fn quietly((): ()) -> String {
    String::new()
}

fn each(call: &Call<'_>, console: &Console) -> Result<Vec<Interface>, CommandError> {
    let mut words = call.words();
    let name = words.next();
    words.end()?;
    match name {
        None => Ok(console.session.interfaces().collect()),
        name => Ok(vec![interface_of(console, name)?]),
    }
}
