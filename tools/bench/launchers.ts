import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { median } from './statistics.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The launcher of the checkout. It runs the same code as the build, with types erased when it starts. */
export const sourceLauncher = join(root, 'bin', 'wcrm.js')

/** Builds both packages as they are published: `bin/` beside `dist/`, without sources. Returns the launcher. */
export const buildPackage = (folder: string): string => {
  for (const part of ['client', 'server'])
    execFileSync(process.execPath, ['scripts/build.ts', part], {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
    })
  mkdirSync(join(folder, 'package'))
  cpSync(join(root, 'bin'), join(folder, 'package', 'bin'), { recursive: true })
  cpSync(join(root, 'package.json'), join(folder, 'package', 'package.json'))
  symlinkSync(join(root, 'dist'), join(folder, 'package', 'dist'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'package', 'node_modules'))
  return join(folder, 'package', 'bin', 'wcrm.js')
}

export type ColdStart = { wcrm: number; node: number; ratio: number }

/** Measures the help of the command line against an empty Node program, in milliseconds. */
export const measureColdStart = (launcher: string): ColdStart => {
  const measureMs = (args: string[]): number => {
    const startedAt = performance.now()
    execFileSync(process.execPath, args, { stdio: 'ignore' })
    return performance.now() - startedAt
  }
  const pairs = Array.from(
    { length: 15 },
    () => [measureMs([launcher, '--help']), measureMs(['-e', '0'])] as const,
  ).slice(2)
  const wcrm = median(pairs.map(([a]) => a))
  const node = median(pairs.map(([, b]) => b))
  return { wcrm, node, ratio: wcrm / node }
}
