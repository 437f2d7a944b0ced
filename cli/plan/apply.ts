import type { Plan } from '../../catalog/plan.ts'
import { quoteWord } from '../argv.ts'
import { loadCredentials } from '../credentials.ts'
import {
  APPROVAL_EXIT_CODE,
  cliError,
  type CliError,
  interruptedError,
  isCliError,
  usageError,
} from '../error.ts'
import { withInterruption } from '../interruption.ts'
import { type Io, isInteractive } from '../io.ts'
import { getResponseExitCode } from '../output.ts'
import { type ApiResponse, callOperation, type ServerConnection } from '../remote.ts'
import { readSteps, type Step, writeSteps } from './file.ts'
import { formatDifferences, formatStep } from './show.ts'

const CONFLICT = 5

const readPlan = (path: string): Step[] => {
  const steps = readSteps(path)
  if (steps.length > 0) return steps
  throw usageError(
    `There is no plan in ${path}.`,
    'file',
    'Write one with --plan FILE of any command that changes data.',
  )
}

/**
 * Connects to the server that the words and the environment name. Throws a usage error where the plan was made for
 * another one: a file must not decide where a key is sent.
 */
const connectFor = async (
  io: Io,
  steps: readonly Step[],
  { url, version, retries }: Pick<ApplyOptions, 'url' | 'version' | 'retries'>,
): Promise<ServerConnection> => {
  const credentials = await loadCredentials(io.env, url, (message) => io.stderr.write(message))
  const other = steps.find(({ server }) => server !== credentials.url)
  if (other)
    throw usageError(
      `The plan was made for ${other.server}, not for ${credentials.url}.`,
      '--url',
      `If you know that server: --url ${other.server}`,
    )
  return { io, ...credentials, version, retries, apiVersion: io.env['WCRM_API_VERSION'] }
}

/** Returns the present plan, when an error says that it is another one. */
const findPresent = (error: unknown): Plan | undefined =>
  isCliError(error) && error.problem['reason'] === 'plan_changed'
    ? (error.problem['plan'] as Plan)
    : undefined

/** Whether nothing is left to do: what the plan would change is as the plan would leave it. */
const isReached = ({ plan }: Step, present: Plan): boolean =>
  present.records.length === 0 &&
  plan.records.length > 0 &&
  plan.records.every(({ before, after }) => before !== null && after !== null)

type Check = {
  state: 'applied' | 'holds' | 'reached' | 'changed' | 'refused'
  lines: string[]
  present?: Plan
}

const check = async (to: ServerConnection, step: Step): Promise<Check> => {
  if (step.applied_at) return { state: 'applied', lines: [`Applied at ${step.applied_at}.`] }
  try {
    await callOperation(to, step.operation, { ...step.input, dry_run: true }, { plan: step.plan.token })
    return { state: 'holds', lines: ['It would do the same now.'] }
  } catch (error) {
    const present = findPresent(error)
    if (present && isReached(step, present))
      return { state: 'reached', lines: ['All of it is so already.'], present }
    if (present)
      return {
        state: 'changed',
        lines: ['Changed since:', ...formatDifferences(step.plan, present)],
        present,
      }
    if (!isCliError(error) || ![3, CONFLICT].includes(error.exitCode)) throw error
    return { state: 'refused', lines: [`Refused now: ${error.problem.detail}`] }
  }
}

const toText = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

/** Shows a plan, and whether each step would still do the same. Returns 5 when one would not. */
export const showPlan = async (
  io: Io,
  path: string,
  { json, url, version }: Pick<ApplyOptions, 'json' | 'url' | 'version'>,
): Promise<number> => {
  const steps = readPlan(path)
  const to = await connectFor(io, steps, { url, version, retries: undefined })
  const checks: (Check & { step: Step })[] = []
  for (const step of steps) checks.push({ step, ...(await check(to, step)) })
  io.stdout.write(
    json
      ? `${JSON.stringify({
          steps: checks.map(({ step, state, present }) => ({
            ...step,
            state,
            ...(present ? { present_plan: present } : {}),
          })),
        })}\n`
      : toText(checks.flatMap(({ step, lines }, i) => [...formatStep(step, i), ...lines])),
  )
  return checks.some(({ state }) => state === 'changed' || state === 'refused') ? CONFLICT : 0
}

export type ApplyOptions = {
  readonly json: boolean
  readonly confirm: readonly string[]
  readonly reason: string | undefined
  readonly retries: number | undefined
  readonly url: string | undefined
  readonly version: string
}

type NumberedStep = { readonly step: Step; readonly index: number }

/** Returns the verb of a step: given, or typed at a prompt that shows the step first. */
const confirmStep = async (
  io: Io,
  { step, index }: NumberedStep,
  { confirm, json }: ApplyOptions,
): Promise<string | undefined> => {
  if (step.confirm === null) return undefined
  if (confirm.includes(step.confirm)) return step.confirm
  if (json || !isInteractive(io)) return undefined
  io.stderr.write(toText(formatStep(step, index)))
  const { promptUser } = await import('../prompt.ts')
  const answer = await promptUser(io, `wcrm ${step.command}. Type ${step.confirm} to continue:`)
  if (answer === undefined) throw interruptedError()
  if (answer.trim() === step.confirm) return step.confirm
  throw cliError(6, {
    type: 'about:blank',
    title: 'Not confirmed',
    code: 'confirm_required',
    detail: `Step ${index + 1} was not applied.`,
  })
}

/** Adds to an error of a step what to do about it. */
const explain = (error: CliError, path: string, { confirm }: Step): CliError => {
  const apply = `wcrm apply ${quoteWord(path)}`
  if (error.problem['idempotency_key'] !== undefined)
    return Object.assign(error, {
      hint: `It is not known whether the change was made. To find out, without making it twice: ${apply}`,
    })
  if (error.problem.code === 'confirm_required' && confirm !== null)
    return Object.assign(error, { hint: `To confirm, add: --confirm ${confirm}` })
  return ['plan_changed', 'plan_unknown'].includes(String(error.problem['reason']))
    ? Object.assign(error, { hint: 'Nothing was done. Create the plan again, and review it.' })
    : error
}

/** Makes the call of a step. Undefined: nothing was left to do. */
const applyStep = async (
  { to, path }: { to: ServerConnection; path: string },
  { step, index }: NumberedStep,
  options: ApplyOptions,
): Promise<ApiResponse | undefined> => {
  const confirm = await confirmStep(to.io, { step, index }, options)
  try {
    return await withInterruption(step.idempotency_key, (signal) =>
      callOperation(to, step.operation, step.input, {
        plan: step.plan.token,
        idempotencyKey: step.idempotency_key,
        confirm,
        reason: options.reason,
        signal,
      }),
    )
  } catch (error) {
    const present = findPresent(error)
    if (present && isReached(step, present)) return undefined
    if (present && !options.json)
      to.io.stderr.write(
        toText([
          `Step ${index + 1}, changed since it was planned:`,
          ...formatDifferences(step.plan, present),
        ]),
      )
    throw isCliError(error) ? explain(error, path, step) : error
  }
}

type StepResult = { step: number; command: string; outcome: string; answer: unknown }

/** A signing secret, which no later call shows again. */
const hasSecret = (answer: object): boolean =>
  Object.values(answer).some((value) => typeof value === 'string' && value.startsWith('whsec_'))

/**
 * Makes the changes of a plan, in order. A step that was applied is noted in the file and left out from then on, so
 * that a plan which stopped goes on where it was. Returns the exit code; throws a CLI error at the first step that is
 * refused.
 */
export const applyPlan = async (io: Io, path: string, options: ApplyOptions): Promise<number> => {
  const steps = readPlan(path)
  const to = await connectFor(io, steps, options)
  const results: StepResult[] = []
  try {
    return await applySteps({ path, steps, to }, options, results)
  } finally {
    // Also of what was done before a step that was refused.
    if (options.json && results.length > 0) io.stdout.write(`${JSON.stringify({ steps: results })}\n`)
  }
}

/** The same, with the results added to `results`. */
const applySteps = async (
  { path, steps, to }: { path: string; steps: Step[]; to: ServerConnection },
  options: ApplyOptions,
  results: StepResult[],
): Promise<number> => {
  const { io } = to
  let exitCode = 0
  for (const [i, step] of steps.entries()) {
    const note = (outcome: string, answer: unknown = null): void => {
      results.push({ step: i + 1, command: step.command, outcome, answer })
      if (!options.json) io.stderr.write(`${i + 1}. wcrm ${step.command}: ${outcome.replaceAll('_', ' ')}\n`)
    }
    if (step.applied_at) {
      note('applied_before')
      continue
    }
    const response = await applyStep({ to, path }, { step, index: i }, options)
    if (response?.approvalId !== undefined) {
      note('waits_for_approval', response.value)
      exitCode = APPROVAL_EXIT_CODE
      break
    }
    const isDry = response?.value['dry_run'] === true
    if (!isDry) {
      steps[i] = { ...step, applied_at: new Date().toISOString() }
      writeSteps(path, steps)
    }
    note(response ? (isDry ? 'dry_run' : 'applied') : 'already_so', response?.value)
    if (response && !options.json && hasSecret(response.value))
      io.stdout.write(`${JSON.stringify(response.value)}\n`)
    exitCode = Math.max(exitCode, response ? getResponseExitCode(response.value) : 0)
  }
  return exitCode
}
