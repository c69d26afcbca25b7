//! The wide forms: each is a proof that the processor has its features.

/// Calls a macro with each form, its features, and the list of them.
macro_rules! forms {
    ($macro:ident) => {
        $macro! {
            /// Proof that the processor has SSE4.1.
            Sse41, "sse4.1", ["sse4.1"]
        }
        $macro! {
            /// Proof that the processor has AVX2, BMI1, BMI2 and MOVBE.
            Avx2, "avx2,bmi1,bmi2,lzcnt,movbe", ["avx2", "bmi1", "bmi2", "lzcnt", "movbe"]
        }
    };
}
pub(super) use forms;

macro_rules! form {
    ($(#[$doc:meta])* $form:ident, $features:literal, [$($feature:tt),*]) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(in super::super) struct $form(());

        impl $form {
            pub(in super::super) fn detect() -> Option<Self> {
                let has = $(std::arch::is_x86_feature_detected!($feature))&&*;
                has.then_some(Self(()))
            }

            /// Calls `task`. Code that is inlined into it is compiled for these features.
            pub(in super::super) fn call<R>(self, task: impl FnOnce() -> R) -> R {
                #[target_feature(enable = $features)]
                fn wide<R>(task: impl FnOnce() -> R) -> R {
                    task()
                }
                // SAFETY: only `detect` makes `self`, after it found each of these features.
                unsafe { wide(task) }
            }
        }
    };
}

forms! { form }
