/** Waits until what began before under the same name has ended. Returns what ends this turn. */
export const takeTurn = async (turns: Map<string, Promise<unknown>>, name: string): Promise<() => void> => {
  const before = turns.get(name)
  const { promise, resolve } = Promise.withResolvers<void>()
  turns.set(name, promise)
  await before
  return () => {
    resolve()
    if (turns.get(name) === promise) turns.delete(name)
  }
}
