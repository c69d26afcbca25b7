//! A token for each form: the proof that the processor has it.

macro_rules! token {
    ($(#[$doc:meta])* $form:ident, [$($feature:tt),*]) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(in super::super) struct $form(());

        impl $form {
            /// The only way to a token.
            pub(in super::super) fn detect() -> Option<Self> {
                let has = $(std::arch::is_x86_feature_detected!($feature))&&*;
                has.then_some(Self(()))
            }
        }
    };
}

token! {
    /// SSE4.1.
    Sse41, ["sse4.1"]
}

token! {
    /// AVX2, BMI1, BMI2, LZCNT and MOVBE.
    Avx2, ["avx2", "bmi1", "bmi2", "lzcnt", "movbe"]
}
