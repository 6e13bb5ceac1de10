"""One HTML file that holds a model, writes with it and shows it think: `build.build_page`."""
