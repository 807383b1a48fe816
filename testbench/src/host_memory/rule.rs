//! The rules of host memory. Each has an id that stays, for tests and for whoever reads reports by machine.

use std::fmt;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $sentence:literal, $advice:literal;)*) => {
        /// What can be broken.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Rule {
            $($(#[$doc])* $name,)*
        }

        impl Rule {
            /// All of them, the device's first, then the CPU's, then the leaks.
            pub const ALL: &[Rule] = &[$(Rule::$name),*];

            /// Its id: kebab-case, and it never changes.
            pub const fn id(self) -> &'static str {
                match self { $(Rule::$name => $id,)* }
            }

            /// What happened, in a sentence.
            pub const fn sentence(self) -> &'static str {
                match self { $(Rule::$name => $sentence,)* }
            }

            /// Where to look, and what to do.
            pub const fn advice(self) -> &'static str {
                match self { $(Rule::$name => $advice,)* }
            }
        }
    };
}

rules! {
    /// The device went to an address that is no page's and no region's.
    DmaUnmapped = "dma-unmapped",
        "DMA to an address that nobody mapped",
        "compare the address with those in the ring: a descriptor that was never written, or half of a base address";
    /// The device went on beyond a page, a fragment or a region, or begins behind one.
    DmaPastEnd = "dma-past-end",
        "DMA past the end of a page or region",
        "compare the length that the card was told (buffer-size table, ring size, descriptor) with what was allocated";
    /// The device went to a page whose mapping had ended.
    DmaAfterUnmap = "dma-after-unmap",
        "DMA to a page whose mapping has ended",
        "the queue must be quiet, and its context invalidated, before its pages are unmapped";
    /// The device went to memory that was given back.
    DmaAfterFree = "dma-after-free",
        "DMA to memory that was freed",
        "the queue must be quiet, and its context invalidated, before its rings and pages are freed";
    /// The device went to memory of another function.
    DmaWrongFunction = "dma-wrong-function",
        "DMA to another function's memory",
        "check which function the queue's context names, and whose ring the address was written to";
    /// A read of what is mapped FromDevice, or a write to what is mapped ToDevice.
    DmaWrongDirection = "dma-wrong-direction",
        "DMA against the direction of the mapping",
        "a page that is received into and sent from must be mapped Bidirectional";
    /// The device went to a page that was taken from it.
    DmaWhileCpuOwns = "dma-while-cpu-owns",
        "DMA to a page that the CPU owns",
        "a descriptor still names the page: it was taken back before the card was done with it, or is in two places";
    /// The device left the buffer that a descriptor offered, within the page. It is let through, as by an IOMMU.
    DmaOutsideBuffer = "dma-outside-buffer",
        "DMA inside the page, but outside the buffer that was offered",
        "compare the buffer size that the card uses with the driver's geometry; headroom and tailroom belong to the CPU";
    /// The device read bytes that the CPU had changed and not synced. It is let through, with the bytes as they were.
    DmaStaleRead = "dma-stale-read",
        "DMA read of bytes that the CPU changed and never synced",
        "sync_for_device (or map) must cover all that was written, headers put in front and padding included";
    /// The device accessed coherent memory so that the CPU may see half of it. It is let through.
    DmaTorn = "dma-torn",
        "DMA to coherent memory that the CPU may see half done",
        "an access of 8 bytes or fewer must lie in one aligned word: check the entry size and the ring's base address";
    /// The CPU changed bytes of a buffer and handed it over without a sync of them.
    UnsyncedWrite = "unsynced-write",
        "a page went back to the device with bytes in its buffer that the CPU changed and did not sync",
        "pass sync_for_device the range that was written: a dirty cache line would be written over the next frame";
    /// A sync, a mapping or a descriptor covers more than the page has.
    RangeOutsidePage = "range-outside-page",
        "a range reaches past the end of its page",
        "check offset plus length against the page, or the fragment; a buffer behind headroom is smaller than its page";
    /// A page that is mapped for one function was used by the driver of another.
    ForeignPage = "foreign-page",
        "a page that is mapped for another function was used",
        "a page that crosses functions must be unmapped by the one and mapped by the other";
    /// A page was unmapped or freed, and fragments of it are out.
    FragmentsOut = "fragments-out",
        "a page was unmapped or freed while fragments of it were out",
        "join all fragments first: the bias of the page must be 0";
    /// A fragment was unmapped or freed.
    FragmentAlone = "fragment-alone",
        "a fragment was unmapped or freed on its own",
        "join it to its page: only a page has a mapping, and memory to give back";
    /// At the end: mapped, and nobody unmapped it.
    LeakedMapping = "leaked-mapping",
        "a streaming mapping was never ended",
        "whoever allocated or mapped the page (see the lines) must unmap and free it when the queue stops";
    /// At the end: allocated, not mapped, and nobody freed it.
    LeakedPage = "leaked-page",
        "a page was never freed",
        "whoever had it last (see the lines) must free it";
    /// At the end: split off, and nobody joined it.
    LeakedFragment = "leaked-fragment",
        "a fragment was never joined to its page",
        "whoever had it last (see the lines) must give it back";
    /// At the end: coherent memory that nobody freed.
    LeakedRegion = "leaked-region",
        "a coherent region was never freed",
        "drop the region when the queue has stopped";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id(), self.sentence())
    }
}

#[cfg(test)]
mod tests {
    use super::Rule;

    #[test]
    fn each_rule_has_its_row_in_the_walk_through() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/debug-a-mismatch.md");
        let page = std::fs::read_to_string(path).expect("the page");
        for rule in Rule::ALL {
            assert!(page.contains(&format!("| `{}` | {} |", rule.id(), rule.sentence())), "{rule}");
        }
    }

    #[test]
    fn ids_are_kebab_case_and_each_is_one_rules() {
        let ids: std::collections::BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        assert_eq!(ids.len(), Rule::ALL.len());
        assert!(ids.iter().all(|id| id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')), "{ids:?}");
    }
}
