//! The macro `metrics!`, which declares each metric once.

/// Declares a struct of metrics, and its `new`, which registers them.
///
/// ```ignore
/// telemetry::metrics! {
///     /// Metrics of the kitchen.
///     pub struct KitchenMetrics {
///         /// Meals that were served.
///         pub meals: counter("meals_total"),
///         /// Time to cook a meal, by its size.
///         times: histograms("cooking_seconds", &BUCKETS, "size", ["small", "large"]),
///         /// Orders of guests.
///         pub orders: OrderMetrics,
///     }
/// }
/// let metrics = KitchenMetrics::new(&registrar)?;
/// metrics.meals.inc();
/// ```
///
/// The doc comment of a metric is its help text. `counter` is the method of [`Registrar`] that registers it: the
/// method receives the name, the help text, and the other arguments; its result is the field's type. A field without
/// arguments, such as `orders`, is another struct of metrics.
///
/// [`Registrar`]: crate::registrar::Registrar
#[macro_export]
macro_rules! metrics {
    (
        $(#[$attribute:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $help:literal])*
                $field_vis:vis $field:ident: $kind:ident $(($($arguments:tt)*))?,
            )*
        }
    ) => {
        $(#[$attribute])*
        $vis struct $name {
            $($(#[doc = $help])* $field_vis $field: $crate::metrics!(@type $kind),)*
        }

        impl $name {
            /// Registers all of them, counters at zero. Fails only for a name that is malformed or taken.
            $vis fn new(registrar: &$crate::registrar::Registrar) -> $crate::prometheus::Result<Self> {
                Ok(Self {
                    $($field: $crate::metrics!(@new registrar [$($help)*] $kind $(($($arguments)*))?),)*
                })
            }
        }
    };

    (@type counter) => { $crate::prometheus::IntCounter };
    (@type counters) => { Vec<$crate::prometheus::IntCounter> };
    (@type counter_family) => { $crate::prometheus::IntCounterVec };
    (@type gauge) => { $crate::prometheus::IntGauge };
    (@type gauges) => { Vec<$crate::prometheus::IntGauge> };
    (@type gauge_family) => { $crate::prometheus::IntGaugeVec };
    (@type fraction) => { $crate::prometheus::Gauge };
    (@type fractions) => { Vec<$crate::prometheus::Gauge> };
    (@type histogram) => { $crate::prometheus::Histogram };
    (@type histograms) => { Vec<$crate::prometheus::Histogram> };
    (@type histogram_family) => { $crate::prometheus::HistogramVec };
    (@type $metrics:ident) => { $metrics };

    (@new $registrar:ident [$($help:literal)+] $method:ident ($name:literal $($more:tt)*)) => {
        $registrar.$method($name, concat!($($help),+).trim() $($more)*)?
    };
    (@new $registrar:ident [$($help:literal)*] $metrics:ident) => { $metrics::new($registrar)? };
}

#[cfg(test)]
mod tests {
    use crate::registrar::Registrar;

    crate::metrics! {
        struct KitchenMetrics {
            /// Meals that were served,
            /// and not sent back.
            meals: counter("meals_total"),
            /// Time to cook a meal, by its size.
            times: histograms("cooking_seconds", &[60.0], "size", ["small", "large"]),
            orders: OrderMetrics,
        }
    }

    crate::metrics! {
        struct OrderMetrics {
            /// Orders that wait.
            waiting: gauge("orders_waiting"),
        }
    }

    #[test]
    fn doc_comments_are_help_texts() {
        let registrar = Registrar::new("x");
        let metrics = KitchenMetrics::new(&registrar).unwrap();
        metrics.meals.inc();
        metrics.times[1].observe(30.0);
        metrics.orders.waiting.set(7);
        let text = registrar.text().unwrap();
        for lines in [
            "# HELP x_meals_total Meals that were served, and not sent back.\n# TYPE x_meals_total counter\n",
            "x_meals_total 1\n",
            "# TYPE x_cooking_seconds histogram\n",
            "x_cooking_seconds_count{size=\"small\"} 0\n",
            "x_cooking_seconds_bucket{size=\"large\",le=\"60\"} 1\n",
            "# HELP x_orders_waiting Orders that wait.\n# TYPE x_orders_waiting gauge\nx_orders_waiting 7\n",
        ] {
            assert!(text.contains(lines), "{lines}\n{text}");
        }
    }
}
