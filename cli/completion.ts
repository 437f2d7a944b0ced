import { local } from './groups.ts'
import { type CommandSpec, commandName, type Manifest } from './manifest.ts'
import { verbs } from './sandbox/verbs.ts'

const flagsOf = (spec: CommandSpec): string[] => [
  ...spec.fields.filter((f) => !spec.args.includes(f.name)).map((f) => f.flag),
  ...(spec.output.paged && spec.verb !== 'export' ? ['--all'] : []),
  ...(spec.own ?? []).map(({ flag }) => flag),
  ...(spec.writes ? ['--dry-run', '--idempotency-key'] : []),
  ...(spec.confirm ? ['--confirm'] : []),
  ...(spec.fields.length > 0 ? ['--input'] : []),
  '--json',
  '--url',
  '--help',
]

type Tree = { groups: Map<string, string[]>; flags: Map<string, string[]>; values: Map<string, string[]> }

const treeOf = (manifest: Manifest): Tree => {
  const groups = new Map<string, string[]>()
  const flags = new Map<string, string[]>()
  const values = new Map<string, string[]>()
  for (const spec of manifest.commands) {
    const verbs = groups.get(spec.group) ?? []
    groups.set(spec.group, spec.verb ? [...verbs, spec.verb] : verbs)
    flags.set(commandName(spec), [...new Set(flagsOf(spec))])
    for (const field of spec.fields)
      if (field.enum) values.set(`${commandName(spec)} ${field.flag}`, [...field.enum])
    for (const { flag, enum: choices } of spec.own ?? [])
      if (choices) values.set(`${commandName(spec)} ${flag}`, [...choices])
    if (spec.confirm) values.set(`${commandName(spec)} --confirm`, [spec.confirm])
  }
  for (const name of Object.keys(local))
    groups.set(name, name === 'completion' ? ['bash', 'zsh', 'fish'] : [])
  // Of a verb of two words the first is completed.
  groups.set('sandbox', [...new Set(verbs.map(({ name }) => name.split(' ')[0]!))])
  for (const { name, required = [], options = [] } of verbs)
    flags.set(`sandbox ${name.split(' ')[0]!}`, [
      ...(flags.get(`sandbox ${name.split(' ')[0]!}`) ?? []),
      ...[...required, ...options].map(([flag]) => flag.split(' ')[0]!),
      '--json',
    ])
  return { groups, flags, values }
}

/** The words of a shell's `case`, one branch for each key. */
const branches = (words: Map<string, string[]>): string =>
  [...words]
    .filter(([, list]) => list.length > 0)
    .map(([key, list]) => `    '${key}') found='${list.join(' ')}' ;;`)
    .join('\n')

const cases = ({ groups, flags, values }: Tree): string => `  case "$group $verb $previous" in
${branches(values)}
  esac
  if [ -n "$found" ]; then return 0; fi
  case "$current" in -*)
    case "$group $verb" in
${branches(flags)}
    esac
    if [ -z "$found" ]; then case "$group" in
${branches(new Map([...flags].filter(([key]) => !key.includes(' '))))}
    esac; fi
    return 0 ;;
  esac
  if [ -z "$group" ]; then found='${[...groups.keys()].join(' ')}'; return 0; fi
  if [ -z "$verb" ]; then case "$group" in
${branches(groups)}
  esac; fi
  return 0`

const bash = (tree: Tree): string => `# bash completion for wcrm
_wcrm_words() {
  local group="$1" verb="$2" previous="$3" current="$4"
  found=''
${cases(tree)}
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

const zsh = (tree: Tree): string => `#compdef wcrm
_wcrm_words() {
  local group="$1" verb="$2" previous="$3" current="$4"
  found=''
${cases(tree)}
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

const fish = ({ groups, flags, values }: Tree): string => {
  const lines = [`complete -c wcrm -n __fish_use_subcommand -f -a '${[...groups.keys()].join(' ')}'`]
  for (const [group, verbs] of groups) {
    if (verbs.length > 0)
      lines.push(
        `complete -c wcrm -n '__fish_seen_subcommand_from ${group}; and not __fish_seen_subcommand_from ${verbs.join(' ')}' -f -a '${verbs.join(' ')}'`,
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

/** The completion script of a shell, made from the same manifest as the commands. */
export const completion = (manifest: Manifest, shell: 'bash' | 'zsh' | 'fish'): string =>
  ({ bash, zsh, fish })[shell](treeOf(manifest))
