import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** Types, lint, and the arrows of docs/design: which folder may import which. */
const arrows: Record<string, readonly string[]> = {
  catalog: [],
  storage: ['catalog'],
  server: ['catalog', 'storage'],
  mcp: ['catalog', 'server'],
  cli: ['catalog'],
}
/** Commands that run a server or its tools are where the whole is composed. */
const composers = /^cli\/(serve|worker|admin|mcp|sandbox)(\.ts|\/)/

const imports = (text: string): string[] =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((m) => m[1]!)

const arrowFaults = (): string[] =>
  Object.entries(arrows).flatMap(([folder, allowed]) =>
    globSync(`${folder}/**/*.ts`).flatMap((file) => {
      if (composers.test(file)) return []
      return imports(readFileSync(file, 'utf8'))
        .map((target) => normalize(join(dirname(file), target)))
        .filter(
          (target) =>
            !target.startsWith(`${folder}/`) &&
            !allowed.includes(target.split('/')[0]!) &&
            target !== 'package.json',
        )
        .map(
          (target) =>
            `${file} imports ${target}: ${folder} may import ${allowed.join(', ') || 'nothing of ours'}`,
        )
    }),
  )

/** SQL stands in storage/ alone: nothing else makes statements. */
const sqlFaults = (): string[] =>
  ['catalog', 'server', 'mcp', 'cli']
    .flatMap((folder) => globSync(`${folder}/**/*.ts`))
    .filter((file) =>
      /from 'kysely'|from 'postgres'/.test(readFileSync(file, 'utf8').replace(/import type [^\n]*/g, '')),
    )
    .map((file) => `${file} makes SQL: statements live in storage/`)

const run = (name: string, command: string, ...args: string[]): boolean => {
  const { status } = spawnSync(process.execPath, [join('node_modules', command), ...args], {
    stdio: 'inherit',
  })
  if (status !== 0) console.error(`${name} failed`)
  return status === 0
}

const faults = [...arrowFaults(), ...sqlFaults()]
for (const fault of faults) console.error(fault)
const ok = [
  faults.length === 0,
  run('types', 'typescript/bin/tsc', '-p', '.'),
  run('lint', 'oxlint/bin/oxlint', '--deny-warnings', '.'),
].every(Boolean)
process.exitCode = ok ? 0 : 1
