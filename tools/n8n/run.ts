import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createPackage } from './package.ts'
import { ROOT } from '../../scripts/supply-chain.ts'

/**
 * `npx node tools/n8n/run.ts` writes the package `n8n-nodes-wcrm` to `dist/n8n`, from the catalog. `--check` has it
 * read by the rules of n8n and compiled, with tools that npm fetches into a temporary folder; both run without a
 * network then.
 */

const tools = [
  '@n8n/scan-community-package@0.32.0',
  '@typescript-eslint/parser@8.35.0',
  'eslint@9.29.0',
  'eslint-plugin-n8n-nodes-base@2.0.0',
  'n8n-workflow@2.41.0',
  'typescript@5.9.3',
]

/** n8n lists verified packages under the MIT licence alone. Under which one this is published is no matter of style. */
const LICENSE_RULE = 'community-package-json-license-not-default'

type Scanner = {
  SOURCE_FILE_PATTERNS: string[]
  analyzePackage: (folder: string, patterns: string[]) => Promise<{ passed: boolean; details?: string }>
}

const write = (folder: string): void => {
  rmSync(folder, { recursive: true, force: true })
  for (const [path, text] of createPackage()) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}

const run = (cwd: string, program: string, ...args: string[]): boolean =>
  spawnSync(program, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] }).status === 0

/** Returns what the rules of n8n find, but for the licence. */
const lint = async (home: string, folder: string): Promise<string> => {
  const scanner = join(home, 'node_modules/@n8n/scan-community-package/scanner/scanner.mjs')
  const { analyzePackage, SOURCE_FILE_PATTERNS } = (await import(pathToFileURL(scanner).href)) as Scanner
  const { passed, details = 'it could not be read' } = await analyzePackage(folder, SOURCE_FILE_PATTERNS)
  const findings = details
    .split('\n')
    .filter((line) => /^ +\d+:\d+ /.test(line) && !line.includes(LICENSE_RULE))
  return passed ? '' : details.includes(LICENSE_RULE) ? findings.join('\n') : details
}

const check = async (): Promise<boolean> => {
  const home = mkdtempSync(join(tmpdir(), 'n8n-nodes-'))
  try {
    writeFileSync(join(home, 'package.json'), '{"private":true}')
    const flags = ['--ignore-scripts', '--legacy-peer-deps', '--no-audit', '--no-fund']
    if (!run(home, 'npm', 'install', ...flags, ...tools)) return false
    const folder = join(home, 'package')
    write(folder)
    const findings = await lint(home, folder)
    console.log(
      findings === '' ? 'The rules of n8n find nothing, but that its licence is not MIT.' : findings,
    )
    const isCompiled = run(home, 'npx', 'tsc', '-p', 'package')
    const { n8n } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      n8n: { nodes: string[]; credentials: string[] }
    }
    const isLoaded = [...n8n.nodes, ...n8n.credentials].every((path) =>
      run(home, process.execPath, '-e', `new (Object.values(require('./package/${path}'))[0])()`),
    )
    return findings === '' && isCompiled && isLoaded
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

if (process.argv.includes('--check')) process.exitCode = (await check()) ? 0 : 1
else {
  const folder = join(ROOT, 'dist/n8n')
  write(folder)
  console.log(folder)
}
