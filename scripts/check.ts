import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/**
 * What is checked before the tests: format, types, lint, unused exports, the import rules of docs/design.md, SQL
 * outside of its folders, reads of the process's clock and the width of lines. Exits with 1 when one of them fails.
 */

/** Which folders a folder may import from; its own is always allowed. The first prefix that fits decides. */
const allowedImports: readonly (readonly [prefix: string, allowed: readonly string[]])[] = [
  ['catalog/', []],
  ['client/', []],
  ['storage/', ['catalog/']],
  // The emulator plays the provider: it knows nothing of the service but its own tables, and the general parts that run
  // jobs and wake them in other processes.
  [
    'packages/sandbox/emulator/',
    [
      'catalog/',
      'packages/sandbox/storage/',
      'storage/database.ts',
      'server/work/runner.ts',
      'server/signals.ts',
    ],
  ],
  ['packages/sandbox/storage/', ['catalog/', 'storage/database.ts', 'storage/access/rate-limits.ts']],
  // Its control acts for the keys of a workspace, and reaches the emulator by HTTP alone.
  ['packages/sandbox/control/', ['catalog/', 'storage/workspace/sandbox-control.ts', 'server/']],
  ['packages/sandbox/', ['storage/database.ts', 'storage/workspace/settings.ts']],
  // What puts the two together, and what fills both.
  ['server/compose.ts', ['catalog/', 'storage/', 'server/', 'packages/sandbox/']],
  ['server/demo/', ['catalog/', 'storage/', 'server/', 'packages/sandbox/']],
  // It knows no feature.
  [
    'server/kernel/',
    [
      'catalog/',
      'storage/',
      ...[
        'api-keys',
        'client-address',
        'clock',
        'diagnostics-channels',
        'ids',
        'metrics',
        'nearest-name',
      ].map((name) => `server/${name}.ts`),
      ...['sealer', 'secret'].map((name) => `server/${name}.ts`),
    ],
  ],
  ['server/', ['catalog/', 'storage/']],
  ['mcp/', ['catalog/', 'client/', 'server/']],
  ['cli/', ['catalog/', 'client/']],
]

/** Commands that run a server or its tools compose the whole and may import all of it. */
const composition = /^cli\/(serve|listeners|processes|worker|admin|mcp|sandbox)(\.ts|\/)/

const MAX_COLUMNS = 120

const sources = globSync(
  '{catalog,client,examples,storage,server,mcp,cli,packages/sandbox,scripts,tests,tools,deploy}/**/*.ts',
  { exclude: ['tools/node_modules/**'] },
).sort()

const importsOf = (text: string): string[] =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) => match[1]!)

const importErrors = (file: string, text: string): string[] => {
  const rule = allowedImports.find(([prefix]) => file.startsWith(prefix))
  if (!rule || composition.test(file)) return []
  const [prefix, allowed] = rule
  return importsOf(text)
    .map((target) => normalize(join(dirname(file), target)))
    .filter((target) => ![prefix, ...allowed, 'package.json'].some((start) => target.startsWith(start)))
    .map(
      (target) =>
        `${file} imports ${target}: ${prefix} may import ${allowed.join(', ') || 'nothing of ours'}`,
    )
}

const withoutTypeImports = (text: string): string => text.replaceAll(/import type [^;]*? from '[^']+'/g, '')

/** A folder of server/, or a file beside them. */
const toServerPart = (file: string): string => file.split('/').slice(0, 2).join('/')

/** Parts of server/ that import each other, types aside. */
const cycleErrors = (): string[] => {
  const imports = new Map<string, Set<string>>()
  for (const file of sources.filter((name) => name.startsWith('server/'))) {
    const part = toServerPart(file)
    const targets = imports.get(part) ?? new Set()
    imports.set(part, targets)
    for (const target of importsOf(withoutTypeImports(readFileSync(file, 'utf8')))) {
      const other = toServerPart(normalize(join(dirname(file), target)))
      if (other.startsWith('server/') && other !== part) targets.add(other)
    }
  }
  const done = new Set<string>()
  const visit = (part: string, path: readonly string[]): string[] => {
    if (path.includes(part)) return [`${[...path.slice(path.indexOf(part)), part].join(' imports ')}`]
    if (done.has(part)) return []
    const errors = [...(imports.get(part) ?? [])].flatMap((other) => visit(other, [...path, part]))
    done.add(part)
    return errors
  }
  return [...imports.keys()].flatMap((part) => visit(part, []))
}

/** Type imports of kysely are fine anywhere; values make statements. */
const sqlErrors = (file: string, text: string): string[] =>
  /^(catalog|server|mcp|cli|packages\/sandbox\/(emulator|control))\//.test(file) &&
  /from '(kysely|postgres)'/.test(text.replace(/import type [^\n]*/g, ''))
    ? [`${file} makes SQL: statements belong in storage/ and packages/sandbox/storage/`]
    : []

/** Who may read the clock of the process, and why. All others take `ctx.now`, `ctx.realNow` or `app.now()`. */
const clockReaders: Readonly<Record<string, string>> = {
  'server/real-time.ts': 'real time is made of it',
  'server/secret.ts': 'a server tells the others what its clock shows',
  'server/start.ts': 'partitions are made before there is an app',
  'server/ids.ts': 'ids are in the order in which this process makes them',
  'server/log-output.ts': 'the time of a line, as pino gives it to the others',
  'server/domains/media/folder-store.ts': 'the age of a file by the clock of the machine that wrote it',
  'server/oauth/sign-in.ts': 'the end of an interaction, which the library sets by the clock of the process',
  'server/provider/adapter/problems.ts': 'how far away a date in an answer is',
  'server/domains/webhooks/schedule.ts': 'how far away a date in an answer is',
  'server/domains/webhooks/send.ts': 'the time of a signature',
  'server/domains/channels/send.ts': 'the time of a signature',
  'server/telemetry/prometheus-producer.ts': 'how long a measurement takes',
  'storage/migrations/migrate.ts': 'when a migration was applied',
  'storage/migrations/0001-baseline.ts': 'the first partitions begin with it',
}

const clockRead = /\bDate\.now\b|\bnew Date\b(?! ?\([^)])|\bTemporal\.Now\b/

const clockErrors = (file: string, text: string): string[] => {
  if (!/^(server|mcp|storage|packages)\//.test(file)) return []
  const reads = clockRead.test(text)
  if (reads && !clockReaders[file])
    return [`${file} reads the clock of the process: take ctx.now, or ctx.realNow or app.now() for real time`]
  if (!reads && clockReaders[file]) return [`${file} no longer reads the clock: remove it from clockReaders`]
  return []
}

/** Columns as an editor shows them: one for each grapheme. */
const countColumns = (line: string): number =>
  line.length > MAX_COLUMNS ? [...new Intl.Segmenter().segment(line)].length : line.length

/** What is generated has the texts of the catalog in it. */
const GENERATED = /^client\/(types|operations)\.ts$/

const widthErrors = (file: string, text: string): string[] =>
  text.split('\n').flatMap((line, i) => {
    const columns = countColumns(line)
    return columns > MAX_COLUMNS ? [`${file}:${i + 1} has ${columns} columns: at most ${MAX_COLUMNS}`] : []
  })

const sourceErrors = (): string[] => [
  ...cycleErrors(),
  ...sources.flatMap((file) => {
    const text = readFileSync(file, 'utf8')
    return [
      ...importErrors(file, text),
      ...sqlErrors(file, text),
      ...clockErrors(file, text),
      ...(GENERATED.test(file) ? [] : widthErrors(file, text)),
    ]
  }),
]

/** Runs an installed tool and shows what it printed when it failed. */
const runTool = (name: string, script: string, ...args: string[]): Promise<boolean> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [join('node_modules', script), ...args])
    let output = ''
    const collect = (chunk: Buffer): void => {
      output += chunk.toString()
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.on('close', (code) => {
      if (code !== 0) console.error(`${output}\n${name} failed`)
      resolve(code === 0)
    })
  })

const main = async (): Promise<boolean> => {
  const errors = sourceErrors()
  for (const error of errors) console.error(error)
  const results = await Promise.all([
    runTool('format (fix it with `npm run format`)', 'oxfmt/bin/oxfmt', '--check', '.'),
    runTool('types', 'typescript/bin/tsc', '-p', '.'),
    runTool('unused exports', 'knip/bin/knip.js', '--no-progress'),
  ])
  // After the types: both read the whole program.
  results.push(await runTool('lint', 'oxlint/bin/oxlint', '.'))
  return errors.length === 0 && results.every(Boolean)
}

process.exitCode = (await main()) ? 0 : 1
