//! What a user may ask of an operation: its summary, its parameters and an example,
//! out of the same text as its struct.

/// What an operation says of itself.
pub(crate) trait OperationDocs {
    /// Lines of documentation.
    const ABOUT: &'static [&'static str];
    /// Each parameter, and lines on its meaning.
    const PARAMETERS: &'static [(&'static str, &'static [&'static str])];
    /// As in a recipe file, behind the dash.
    const EXAMPLE: &'static str;
}

/// A struct as it is, and [`OperationDocs`] for it: documentation comments become text.
///
/// In front of the struct stand its documentation, one `derive` and then `serde`
/// attributes; fields have their documentation first. Where each field has `= value`, these
/// are the values of its `Default`.
macro_rules! described {
    (
        example: $example:literal;

        $(#[doc = $about:literal])*
        #[derive($($derive:tt)*)]
        $(#[serde($($serde:tt)*)])*
        pub struct $name:ident {
            $(
                $(#[doc = $meaning:literal])*
                $(#[serde($($field_serde:tt)*)])*
                pub $field:ident: $ty:ty = $default:expr
            ),+ $(,)?
        }
    ) => {
        crate::recipe::operation_docs::described! {
            example: $example;

            $(#[doc = $about])*
            #[derive($($derive)*)]
            $(#[serde($($serde)*)])*
            pub struct $name {
                $(
                    $(#[doc = $meaning])*
                    $(#[serde($($field_serde)*)])*
                    pub $field: $ty
                ),+
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),+ }
            }
        }
    };
    (
        example: $example:literal;

        $(#[doc = $about:literal])*
        #[derive($($derive:tt)*)]
        $(#[serde($($serde:tt)*)])*
        pub struct $name:ident $(<$inner:ident>)? {
            $(
                $(#[doc = $meaning:literal])*
                $(#[serde($($field_serde:tt)*)])*
                pub $field:ident: $ty:ty
            ),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        ///
        /// ```yaml
        #[doc = concat!("- ", $example)]
        /// ```
        #[derive($($derive)*)]
        $(#[serde($($serde)*)])*
        pub struct $name $(<$inner>)? {
            $(
                $(#[doc = $meaning])*
                $(#[serde($($field_serde)*)])*
                pub $field: $ty
            ),*
        }

        impl $(<$inner>)? crate::recipe::operation_docs::OperationDocs for $name $(<$inner>)? {
            const ABOUT: &'static [&'static str] = &[$($about),*];
            const PARAMETERS: &'static [(&'static str, &'static [&'static str])] =
                &[$((stringify!($field), &[$($meaning),*])),*];
            const EXAMPLE: &'static str = $example;
        }
    };
}

pub(crate) use described;
