/** Other names of verbs; where two verbs of a group could have one, the upper has it. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  list: ['ls'],
  search: ['list', 'ls'],
  get: ['show'],
  upsert: ['create'],
  delete: ['rm'],
  remove: ['rm'],
}

/** Returns the other names of a verb in a group with these verbs: none that a verb, or another alias, has. */
export const aliasesOf = (verb: string, verbs: readonly string[]): readonly string[] =>
  (ALIASES[verb] ?? []).filter(
    (alias) =>
      !verbs.includes(alias) &&
      verb === Object.keys(ALIASES).find((name) => verbs.includes(name) && ALIASES[name]!.includes(alias)),
  )

/** Says in the last line of help which other names the verbs of a group have; empty for none. */
export const describeAliases = (verbs: readonly string[]): string => {
  const described = verbs.flatMap((verb) => {
    const aliases = aliasesOf(verb, verbs)
    return aliases.length > 0 ? [`${aliases.join(' and ')} (${verb})`] : []
  })
  return described.length > 0 ? `\nAliases: ${described.join(', ')}.` : ''
}
