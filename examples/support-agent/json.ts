/** Returns what is at a path in JSON; undefined where there is nothing. */
export const read = (json: unknown, ...path: readonly (string | number)[]): unknown => {
  let value = json
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = Reflect.get(value, name)
  }
  return value
}

export const readText = (json: unknown, ...path: readonly (string | number)[]): string | undefined => {
  const value = read(json, ...path)
  return typeof value === 'string' ? value : undefined
}

export const readList = (json: unknown, ...path: readonly (string | number)[]): readonly unknown[] => {
  const value = read(json, ...path)
  return Array.isArray(value) ? value : []
}

/** Parses an object that a model or a server wrote; undefined when it is none. */
export const parseObject = (text: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value))
      : undefined
  } catch {
    return undefined
  }
}
