//! The documentation of an operation for users: summary, parameters and example. It comes from the
//! doc comments of the operation's struct.

/// The documentation of an operation.
pub(crate) trait OperationDocs {
    /// Lines of documentation.
    const ABOUT: &'static [&'static str];
    /// Each parameter, with the lines of its documentation.
    const PARAMETERS: &'static [(&'static str, &'static [&'static str])];
    /// As an item of a list in a recipe file, without the dash.
    const EXAMPLE: &'static str;
}

/// Defines a struct unchanged and implements [`OperationDocs`] for it: its doc comments become
/// text.
///
/// The order before the struct is: its documentation, one `derive`, then `serde` attributes. The
/// documentation of a field comes first. If each field has `= value`, these values become its
/// `Default`.
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
