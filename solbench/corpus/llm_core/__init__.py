"""LLM_CORE: frozen rules that turn a capacity class into nine workloads a Definition, or into none."""
