//! The macro that makes a charm the component's handler.

/// Exports a type that implements [`Charm`](crate::Charm) as this component's handler; once per charm.
#[macro_export]
macro_rules! export {
    ($charm:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Exported;
            impl $crate::bindings::exports::periapt::charm::handler::Guest for Exported {
                fn handle(
                    invocation: $crate::Invocation,
                ) -> ::core::result::Result<$crate::Outcome, $crate::Failure> {
                    $crate::handle::<$charm>(invocation)
                }
            }
    $crate::bindings::export_bindings!(Exported with_types_in $crate::bindings);
        };
        // On the host there is no component. This reference keeps the charm in use for its tests.
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn($crate::Invocation) -> ::core::result::Result<$crate::Outcome, $crate::Failure> =
            $crate::handle::<$charm>;
    };
}
