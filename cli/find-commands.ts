import { createOperationSearch } from '../catalog/operation-search.ts'
import { type CommandSpec, commandName, readManifest } from './manifest.ts'

/** The command of each operation: an export is another one of its list. */
export const listOperationCommands = (): readonly CommandSpec[] =>
  readManifest().commands.filter(({ verb }) => verb !== 'export')

const MAX_FOUND = 3

/** Returns the commands for what somebody wants to do, best first; of one group, where it is given. */
export const findCommands = (query: string, group?: string): CommandSpec[] => {
  const specs = listOperationCommands()
  const search = createOperationSearch(
    specs.map((spec) => ({
      operation: spec.operation,
      command: commandName(spec),
      summary: spec.summary,
      description: spec.about ?? '',
      fields: spec.fields.map(({ name }) => name).join(' '),
      fieldDescriptions: spec.fields.map(({ about }) => about).join(' '),
    })),
  )
  const byName = new Map(specs.map((spec) => [spec.operation, spec]))
  return search(query)
    .map((name) => byName.get(name)!)
    .filter((spec) => group === undefined || spec.group === group)
    .slice(0, MAX_FOUND)
}
