import { localCommands } from './groups.ts'
import { type CommandSpec, commandName, type Manifest } from './manifest.ts'
import { sandboxVerbs } from './sandbox/verbs.ts'

const listFlags = (spec: CommandSpec): string[] => [
  ...spec.fields.filter((f) => !spec.args.includes(f.name)).map((f) => f.flag),
  ...(spec.output.paged && spec.verb !== 'export' ? ['--all'] : []),
  ...(spec.own ?? []).map(({ flag }) => flag),
  ...(spec.writes ? ['--dry-run', '--plan', '--idempotency-key'] : []),
  ...(spec.confirm ? ['--confirm'] : []),
  ...(spec.fields.length > 0 ? ['--input'] : []),
  '--json',
  '--url',
  '--help',
]

type CompletionTree = {
  groups: Map<string, string[]>
  flags: Map<string, string[]>
  values: Map<string, string[]>
}

const buildCompletionTree = (manifest: Manifest): CompletionTree => {
  const groups = new Map<string, string[]>()
  const flags = new Map<string, string[]>()
  const values = new Map<string, string[]>()
  for (const spec of manifest.commands) {
    const groupVerbs = groups.get(spec.group) ?? []
    groups.set(spec.group, spec.verb ? [...groupVerbs, spec.verb] : groupVerbs)
    flags.set(commandName(spec), [...new Set(listFlags(spec))])
    for (const field of spec.fields)
      if (field.enum) values.set(`${commandName(spec)} ${field.flag}`, [...field.enum])
    for (const { flag, enum: choices } of spec.own ?? [])
      if (choices) values.set(`${commandName(spec)} ${flag}`, [...choices])
    if (spec.confirm) values.set(`${commandName(spec)} --confirm`, [spec.confirm])
  }
  for (const name of Object.keys(localCommands))
    groups.set(name, name === 'completion' ? ['bash', 'zsh', 'fish'] : [])
  // Only the first word of a two-word verb is completed.
  groups.set('sandbox', [...new Set(sandboxVerbs.map(({ name }) => name.split(' ')[0]!))])
  for (const { name, required = [], options = [] } of sandboxVerbs)
    flags.set(`sandbox ${name.split(' ')[0]!}`, [
      ...(flags.get(`sandbox ${name.split(' ')[0]!}`) ?? []),
      ...[...required, ...options].map(([flag]) => flag.split(' ')[0]!),
      '--json',
    ])
  return { groups, flags, values }
}

/** Renders the branches of a shell's `case`, one for each key. */
const renderBranches = (words: Map<string, string[]>): string =>
  [...words]
    .filter(([, list]) => list.length > 0)
    .map(([key, list]) => `    '${key}') found='${list.join(' ')}' ;;`)
    .join('\n')

const renderCases = ({ groups, flags, values }: CompletionTree): string => `  case "$group $verb $previous" in
${renderBranches(values)}
  esac
  if [ -n "$found" ]; then return 0; fi
  case "$current" in -*)
    case "$group $verb" in
${renderBranches(flags)}
    esac
    if [ -z "$found" ]; then case "$group" in
${renderBranches(new Map([...flags].filter(([key]) => !key.includes(' '))))}
    esac; fi
    return 0 ;;
  esac
  if [ -z "$group" ]; then found='${[...groups.keys()].join(' ')}'; return 0; fi
  if [ -z "$verb" ]; then case "$group" in
${renderBranches(groups)}
  esac; fi
  return 0`

const bash = (tree: CompletionTree): string => `# bash completion for wcrm
_wcrm_words() {
  local group="$1" verb="$2" previous="$3" current="$4"
  found=''
${renderCases(tree)}
}
_wcrm() {
  local found group='' verb=''
  if [ "$COMP_CWORD" -gt 1 ]; then group="\${COMP_WORDS[1]}"; fi
  if [ "$COMP_CWORD" -gt 2 ]; then verb="\${COMP_WORDS[2]}"; fi
  _wcrm_words "$group" "$verb" "\${COMP_WORDS[COMP_CWORD-1]}" "\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=($(compgen -W "$found" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _wcrm wcrm
`

const zsh = (tree: CompletionTree): string => `#compdef wcrm
_wcrm_words() {
  local group="$1" verb="$2" previous="$3" current="$4"
  found=''
${renderCases(tree)}
}
_wcrm() {
  local -a typed
  typed=("\${words[@]}")
  local at=$CURRENT
  local found group='' verb=''
  if (( at > 2 )); then group="$typed[2]"; fi
  if (( at > 3 )); then verb="$typed[3]"; fi
  _wcrm_words "$group" "$verb" "$typed[at-1]" "$typed[at]"
  if [ -n "$found" ]; then compadd -- \${=found}; else _files; fi
}
compdef _wcrm wcrm
`

const fish = ({ groups, flags, values }: CompletionTree): string => {
  const lines = [`complete -c wcrm -n __fish_use_subcommand -f -a '${[...groups.keys()].join(' ')}'`]
  for (const [group, verbs] of groups) {
    if (verbs.length > 0)
      lines.push(
        `complete -c wcrm -n '__fish_seen_subcommand_from ${group}; ` +
          `and not __fish_seen_subcommand_from ${verbs.join(' ')}' -f -a '${verbs.join(' ')}'`,
      )
  }
  for (const [name, list] of flags) {
    const seen = name
      .split(' ')
      .map((word) => `__fish_seen_subcommand_from ${word}`)
      .join('; and ')
    for (const flag of list) {
      const choices = values.get(`${name} ${flag}`)
      lines.push(
        `complete -c wcrm -n '${seen}' -l ${flag.slice(2)}${choices ? ` -x -a '${choices.join(' ')}'` : ''}`,
      )
    }
  }
  return `# fish completion for wcrm\n${lines.join('\n')}\n`
}

/** Renders a shell's completion script from the same manifest as the commands. */
export const renderCompletion = (manifest: Manifest, shell: 'bash' | 'zsh' | 'fish'): string =>
  ({ bash, zsh, fish })[shell](buildCompletionTree(manifest))
