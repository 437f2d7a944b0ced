import { closest, distance } from 'fastest-levenshtein'
import { createOperationSearch } from '../catalog/operation-search.ts'
import { type CommandSpec, commandName, readOperationCommands } from './manifest.ts'

const MAX_FOUND = 3

/** Returns the commands of operations for what somebody wants to do, best first. */
const findCommands = (query: string): CommandSpec[] => {
  const specs = readOperationCommands()
  const search = createOperationSearch(
    specs.map((spec) => ({
      operation: spec.operation,
      command: commandName(spec),
      words: spec.words,
      summary: spec.summary,
      description: spec.about ?? '',
      fields: spec.fields.map(({ name }) => name).join(' '),
      fieldDescriptions: spec.fields.map(({ about }) => about).join(' '),
    })),
  )
  const byName = new Map(specs.map((spec) => [spec.operation, spec]))
  return search(query)
    .slice(0, MAX_FOUND)
    .map((name) => byName.get(name)!)
}

/** Returns the operations that an unknown name may mean: the one that is written nearly so, else by its words. */
export const suggestOperations = (name: string): string[] => {
  const near = closest(
    name,
    readOperationCommands().map(({ operation }) => operation),
  )
  return distance(name, near) <= 2
    ? [near]
    : findCommands(name.replaceAll('_', ' ')).map((spec) => spec.operation)
}

/** What commander writes of an unknown command, and which ones look like it. */
const UNKNOWN = /^(unknown command '([^']+)')(?: \(Did you mean (?:one of )?([^)]+)\?\))?$/

/** Whether one letter is wrong, missing or too many, or letters are transposed. */
const isTypo = (word: string, name: string): boolean =>
  distance(name, word) === 1 || (distance(name, word) === 2 && sortLetters(name) === sortLetters(word))

const sortLetters = (word: string): string => [...word].toSorted().join('')

/**
 * Returns what to write of an unknown command, and the commands that do what its words say; undefined for a typo,
 * since commander names the command then.
 */
export const suggestCommands = (
  detail: string,
  words: readonly string[],
): { detail: string; names: string[] } | undefined => {
  const [, bare, word = '', similar = ''] = UNKNOWN.exec(detail) ?? []
  if (bare === undefined || similar.split(', ').some((name) => isTypo(word, name))) return undefined
  const names = findCommands(words.join(' ')).map((spec) => `wcrm ${commandName(spec)}`)
  return names.length > 0 ? { detail: bare, names } : undefined
}
