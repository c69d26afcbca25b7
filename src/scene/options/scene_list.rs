//! Options of a run over a scene, as a caller says them: a list becomes the struct, and what hands
//! them to the builder. A generic cannot do this: fields of a struct within another one would let
//! unknown names pass.
//!
//! In the consumer. Never in here: defaults; the builder has them.

/// A struct of options, each `None` or a value. An option has the name of the builder's method
/// that takes it.
macro_rules! scene_options {
    (
        $(#[$about:meta])*
        $name:ident: $kind:ty {
            $($(#[$meta:meta])* $option:ident: $value:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            /// Of this process among those that train together: both or none.
            pub rank: Option<u32>,
            pub world_size: Option<u32>,
            $($(#[$meta])* pub $option: Option<$value>,)*
        }

        impl $name {
            /// The run that they describe.
            ///
            /// # Errors
            /// One of `rank` and `world_size` alone.
            pub fn builder(
                self,
                scene: impl Into<crate::scene::run::SceneSource>,
            ) -> crate::error::Result<crate::scene::run::SceneBuilder<$kind>> {
                let mut builder = crate::scene::run::SceneRun::<$kind>::builder(scene);
                if let Some(rank) = crate::options::rank::given_rank(self.rank, self.world_size)? {
                    builder = builder.rank(rank);
                }
                $(
                    if let Some(value) = self.$option {
                        builder = builder.$option(value);
                    }
                )*
                Ok(builder)
            }
        }
    };
}

pub(super) use scene_options;
