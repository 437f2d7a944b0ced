import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { faults, type Fault } from './faults.ts'

/**
 * `node tools/planted-faults/run.ts [TEXT…]`: plants each fault (or those of which the file or the test contains one of
 * the texts) in a copy of the tree, one at a time, and runs the test that is to find it, on the embedded database.
 * Exits with 1 when one is missed.
 */
const texts = process.argv.slice(2)
const root = resolve(import.meta.dirname, '../..')

const testsOf = ({ test, name }: Fault): string => [test, name].filter(Boolean).join(', ')

const copyTree = (folder: string): void => {
  const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  const deleted = execFileSync('git', ['ls-files', '-z', '--deleted'], { cwd: root, encoding: 'utf8' })
  const missing = new Set(deleted.split('\0'))
  for (const file of list.split('\0').filter((name) => name !== '' && !missing.has(name))) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
}

/** Runs the tests that are to find a fault, and returns whether one failed. */
const hasFailed = (folder: string, { test, name }: Fault): boolean => {
  // The second is that of the test which ends each file (`scripts/test-worker.ts`).
  const patterns = name === undefined ? [] : [name, String.raw`\.test\.ts$`]
  const options = patterns.map((pattern) => `--test-name-pattern=${JSON.stringify(pattern)}`)
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/test.ts', '--quick', test], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: options.join(' ') },
  })
  const tests = Number(/^ℹ tests (\d+)/m.exec(stdout)?.[1] ?? 0)
  if (tests < 1) throw new Error(`${test} did not run:\n${stdout}${stderr}`)
  return status !== 0
}

/** Plants the fault, runs its test and takes the fault away. */
const isFound = (folder: string, fault: Fault): boolean => {
  const { file, find, replace } = fault
  const path = join(folder, file)
  const source = readFileSync(path, 'utf8')
  if (source.split(find).length !== 2) throw new Error(`${file} does not contain exactly once: ${find}`)
  writeFileSync(
    path,
    source.replace(find, () => replace),
  )
  try {
    return hasFailed(folder, fault)
  } finally {
    writeFileSync(path, source)
  }
}

const main = (): number => {
  const chosen = faults.filter(
    ({ file, test }) =>
      texts.length === 0 || texts.some((text) => file.includes(text) || test.includes(text)),
  )
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-planted-'))
  try {
    copyTree(folder)
    let [missed, broken] = [0, 0]
    for (const tests of new Set(chosen.map(testsOf))) {
      const own = chosen.filter((fault) => testsOf(fault) === tests)
      if (hasFailed(folder, own[0]!)) {
        broken++
        console.log(`fails without a fault: ${tests}`)
        continue
      }
      for (const fault of own) {
        const found = isFound(folder, fault)
        if (!found) missed++
        console.log(`${found ? 'found ' : 'MISSED'} ${fault.file}: ${fault.find.trim()} (${tests})`)
      }
    }
    console.log(`${chosen.length} faults, ${missed} missed, ${broken} tests fail without a fault`)
    return missed + broken === 0 && chosen.length > 0 ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

process.exitCode = main()
