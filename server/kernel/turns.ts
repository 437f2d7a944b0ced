/** Runs work after what began before under the same name has ended, however that ended. */
export const inTurnOf = async <T>(
  turns: Map<string, Promise<unknown>>,
  name: string,
  work: () => Promise<T>,
): Promise<T> => {
  const before = turns.get(name)
  const mine = (async () => {
    await before?.catch(() => {})
    return await work()
  })()
  turns.set(name, mine)
  try {
    return await mine
  } finally {
    if (turns.get(name) === mine) turns.delete(name)
  }
}
