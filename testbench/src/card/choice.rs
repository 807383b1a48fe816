//! Which card: a name and its options, and the making of it.

use models::qdma::{Qdma, QdmaConfig};
use models::shell::{Profile, Shell, ShellConfig};

use super::model::ModelCard;
use super::{Card, Knobs, Shape};
use crate::execute::ExecuteError;

/// A card as a user names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// `model`, `hybrid` or `rtl`.
    pub name: String,
    /// How the model behaves.
    pub profile: Profile,
    /// What only RTL has.
    pub rtl: RtlChoice,
}

/// Options of cards with RTL in them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RtlChoice {
    /// Root seed of stalls and initial state.
    pub seed: u64,
    /// Stall pattern on every stream.
    pub stalls: String,
    /// Disturb one frame between RTL and QDMA.
    pub tap: Option<String>,
    /// Switch on a fault of the fault build.
    pub fault: Option<u8>,
    /// FST waves into this file.
    pub waves: Option<std::path::PathBuf>,
    /// Only between these picoseconds.
    pub wave_window: Option<(u64, u64)>,
    /// Write user coverage here at the end.
    pub coverage: Option<std::path::PathBuf>,
    /// Value from which every 64-bit counter starts.
    pub counter_preload: Option<u32>,
    /// Cycles of axis_aclk without progress that are a hang; as many as usual without.
    pub hang_cycles: Option<u64>,
    /// Phases of the clocks, ps: axil, axis, cmac 0, cmac 1.
    pub phases_ps: [u64; 4],
    /// Length of the power-up reset, cycles of axil_aclk; the usual one without.
    pub reset_cycles: Option<u64>,
    /// Of card `rtl`: its host, and how far it reads ahead.
    pub knobs: Knobs,
}

impl Choice {
    /// A card by name, all options at their defaults.
    pub fn named(name: &str) -> Choice {
        Choice {
            name: name.into(),
            profile: Profile::Corrected,
            rtl: RtlChoice { seed: 1, stalls: "none".into(), ..RtlChoice::default() },
        }
    }

    /// Its QDMA is the model, with the model's knobs.
    pub fn has_qdma_model(&self) -> bool {
        self.name != "rtl"
    }

    /// Make it.
    ///
    /// # Errors
    /// [`ExecuteError`].
    pub fn make(&self, shape: &Shape) -> Result<Box<dyn Card>, ExecuteError> {
        self.make_with(shape, qdma_config(shape))
    }

    /// Make it with a QDMA of one's own choice.
    ///
    /// # Errors
    /// [`ExecuteError`], also for a choice that only the model can follow, on a card without it.
    pub fn make_with(&self, shape: &Shape, qdma: QdmaConfig) -> Result<Box<dyn Card>, ExecuteError> {
        match self.name.as_str() {
            "model" => {
                let shell =
                    Shell::new(self.shell_config(shape)).map_err(|error| ExecuteError::Card(error.to_string()))?;
                Ok(Box::new(ModelCard::new(shell, Qdma::new(qdma), shape.ports)))
            }
            #[cfg(feature = "rtl")]
            "hybrid" => super::hybrid::make(self, shape, qdma),
            #[cfg(feature = "rtl")]
            "rtl" if qdma != qdma_config(shape) => {
                Err(ExecuteError::Card("card `rtl` has none of the QDMA model's knobs".into()))
            }
            #[cfg(feature = "rtl")]
            "rtl" => super::rtl::make(self, shape),
            #[cfg(not(feature = "rtl"))]
            "hybrid" | "rtl" => Err(ExecuteError::Build(
                "this onic was built without RTL (ONIC_NO_RTL=1); --card model is there".into(),
            )),
            other => Err(ExecuteError::Card(format!("there is no card `{other}`: model, hybrid or rtl"))),
        }
    }

    fn shell_config(&self, shape: &Shape) -> ShellConfig {
        ShellConfig {
            functions: shape.functions,
            ports: shape.ports,
            min_pkt_len: shape.min_pkt_len,
            max_pkt_len: shape.max_pkt_len,
            profile: self.profile,
            counter_preload: self.rtl.counter_preload.unwrap_or(0),
            ..ShellConfig::default()
        }
    }
}

/// The QDMA of every card that has the model's.
pub fn qdma_config(shape: &Shape) -> QdmaConfig {
    QdmaConfig { num_functions: shape.functions, ..QdmaConfig::default() }
}
