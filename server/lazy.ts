/** Returns a function that computes a value when it is first called, and returns the same one from then on. */
export const lazy = <T>(compute: () => T): (() => T) => {
  let computed: { value: T } | undefined
  return () => (computed ??= { value: compute() }).value
}
