import { type CommandSpec, findCommand } from '../manifest.ts'
import { type CommandNode, nodeOf, type Slot, withAliases } from './tree.ts'

/** What is known of the commands. */
export type Commands = {
  readonly specs: readonly CommandSpec[]
  readonly groups: Readonly<Record<string, string>>
  readonly local: Readonly<Record<string, CommandNode>>
}

/** What the last word of a line is to become. */
export type Question = {
  /** The operation of the command, or the one that `ops` and `schema` name. */
  readonly spec: CommandSpec | undefined
  /** The values of the flags before it; an empty text for one without. */
  readonly given: ReadonlyMap<string, readonly string[]>
  /** What may stand here: a word of the command, a flag, or a value. */
  readonly verbs: Readonly<Record<string, CommandNode>>
  readonly flags: Readonly<Record<string, Slot>>
  readonly slot: Slot | undefined
  /** What stands before the value in the word: `--tag=`, and the items before the last comma. */
  readonly before: string
  readonly typed: string
}

const globalFlags: Readonly<Record<string, Slot>> = {
  '--url': { about: 'base URL of the server (also WCRM_URL)', kind: 'text' },
  '--profile': { about: 'the stored key to use', kind: 'profile', short: '-p' },
  '--json': { about: 'print JSON' },
  '--help': { about: 'show help', short: '-h' },
}
const rootFlags: Readonly<Record<string, Slot>> = {
  ...globalFlags,
  '--version': { about: 'show the version' },
}

/** Commands that call no server with a stored key. */
const WITHOUT_PROFILE = ['serve', 'worker', 'admin', 'completion', 'profiles', 'switch']

const groupNode = ({ specs }: Commands, group: string, about: string): CommandNode => {
  const own = specs.filter((spec) => spec.group === group)
  const [only] = own
  if (only && only.verb === '') return nodeOf(only)
  return {
    about,
    verbs: withAliases(Object.fromEntries(own.map((spec) => [spec.verb, { about: spec.summary }]))),
    flags: { '--help': globalFlags['--help']! },
  }
}

const rootNode = (commands: Commands): CommandNode => ({
  verbs: {
    ...Object.fromEntries(Object.entries(commands.groups).map(([name, about]) => [name, { about }])),
    ...commands.local,
    help: { about: 'Show the help of a command' },
  },
  flags: rootFlags,
})

type State = {
  path: string[]
  node: CommandNode
  spec: CommandSpec | undefined
  args: string[]
  given: Map<string, string[]>
  pending: string | undefined
  isLiteral: boolean
  isHelp: boolean
}

/** The flags that a command takes, those of every command included. */
const flagsOf = ({ node, path }: State): Readonly<Record<string, Slot>> => {
  if (path.length === 0) return rootFlags
  const { flags = {} } = node
  return WITHOUT_PROFILE.includes(path[0]!) || flags['--profile']
    ? flags
    : { ...flags, '--profile': globalFlags['--profile']! }
}

const findFlag = (state: State, word: string): string | undefined => {
  const flags = flagsOf(state)
  if (Object.hasOwn(flags, word)) return word
  return Object.keys(flags).find((name) => flags[name]!.short === word)
}

/** Enters a command whose name is the next word. */
const descend = (commands: Commands, state: State, word: string): void => {
  const [group = ''] = state.path
  state.path.push(word)
  if (group === '' && Object.hasOwn(commands.groups, word)) {
    state.node = groupNode(commands, word, commands.groups[word]!)
    state.spec = commands.specs.find((spec) => spec.group === word && spec.verb === '')
  } else if (group !== '' && Object.hasOwn(commands.groups, group)) {
    state.spec = findCommand(commands.specs, group, word)
    state.node = nodeOf(state.spec!)
  } else state.node = state.node.verbs![word]!
}

const findOperation = ({ specs }: Commands, name: string): CommandSpec | undefined =>
  specs.find((spec) => spec.operation === name && spec.verb !== 'export')

const takeArgument = (commands: Commands, state: State, word: string): void => {
  const [command] = state.path
  if (command === undefined && word === 'help' && !state.isHelp) {
    state.isHelp = true
    return
  }
  if (state.node.verbs && state.args.length === 0) {
    if (Object.hasOwn(state.node.verbs, word) && word !== 'help') return descend(commands, state, word)
    if (!state.node.args) return
  }
  if ((command === 'ops' || command === 'schema') && state.spec === undefined) {
    state.spec = findOperation(commands, word)
    // What `ops` runs is the command of the operation.
    if (command === 'ops' && state.spec) {
      state.node = nodeOf(state.spec)
      return
    }
  }
  state.args.push(word)
}

const takeWord = (commands: Commands, state: State, word: string): void => {
  if (state.pending !== undefined) {
    state.given.get(state.pending)!.push(word)
    state.pending = undefined
  } else if (!state.isLiteral && word === '--') state.isLiteral = true
  else if (!state.isLiteral && word.startsWith('-') && word !== '-') {
    const at = word.indexOf('=')
    const [head, value] = at === -1 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)]
    const name = findFlag(state, head)
    if (name === undefined) return
    const slot = flagsOf(state)[name]!
    const values = state.given.get(name) ?? []
    state.given.set(name, value === undefined ? values : [...values, value])
    if (slot.kind !== undefined && !slot.attached && value === undefined) state.pending = name
  } else takeArgument(commands, state, word)
}

/** Divides what is typed of a list at its last comma. */
const divide = (
  slot: Slot | undefined,
  before: string,
  typed: string,
): Pick<Question, 'before' | 'typed'> => {
  const at = slot?.list && !/^[@[{]/.test(typed) ? typed.lastIndexOf(',') + 1 : 0
  return { before: before + typed.slice(0, at), typed: typed.slice(at) }
}

/** Understands the words before the last one, which need not be whole, and says what the last one may be. */
export const askFor = (commands: Commands, words: readonly string[]): Question => {
  const state: State = {
    path: [],
    node: rootNode(commands),
    spec: undefined,
    args: [],
    given: new Map(),
    pending: undefined,
    isLiteral: false,
    isHelp: false,
  }
  for (const word of words.slice(0, -1)) takeWord(commands, state, word)
  const last = words.at(-1) ?? ''
  const { spec, given, node } = state
  const flags = flagsOf(state)
  const base = { spec, given, verbs: {}, flags: {} }
  if (state.pending !== undefined) {
    const slot = flags[state.pending]
    return { ...base, slot, ...divide(slot, '', last) }
  }
  if (!state.isLiteral && last.startsWith('--') && last.includes('=')) {
    const head = last.slice(0, last.indexOf('='))
    const name = findFlag(state, head)
    const slot = name === undefined ? undefined : flags[name]
    return { ...base, slot, ...divide(slot, `${head}=`, last.slice(head.length + 1)) }
  }
  if (!state.isLiteral && last.startsWith('-') && last !== '-')
    return { ...base, flags, slot: undefined, before: '', typed: last }
  // A command with commands below it may also take arguments.
  const isVerb = !node.args || Object.keys(node.verbs ?? {}).some((verb) => verb.startsWith(last))
  if (node.verbs && isVerb && state.args.length === 0 && !(state.isHelp && spec))
    return { ...base, verbs: node.verbs, slot: undefined, before: '', typed: last }
  const slot = state.isHelp ? undefined : node.args?.[state.args.length]
  return {
    ...base,
    flags: slot || state.isLiteral || last !== '' ? {} : flags,
    slot,
    ...divide(slot, '', last),
  }
}
