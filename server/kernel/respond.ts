import { currentVersion } from '../../catalog/index.ts'
import { type Problem, type ProblemDocument, toProblemDocument } from './problem.ts'

/** What a transport sends: a status, headers and JSON text. `problem` is the parsed body of an error. */
export type CallResponse = {
  status: number
  headers: Record<string, string>
  body: string
  problem?: ProblemDocument
  /** The body has the plan of a dry run, which holds values of any record. */
  isPlanned?: boolean
  /** The version of the record that a read shows, where it has one. */
  version?: string | undefined
}

/** Of a read that was given up since its client is gone; nobody is answered (nginx: client closed request). */
export const CLIENT_GONE_STATUS = 499

/** What came of a call, for the log and the metrics: the code of the problem, if any. */
export const getResultCode = ({ status, problem }: CallResponse): string =>
  status === CLIENT_GONE_STATUS ? 'client_gone' : (problem?.code ?? 'ok')

type ResponseOptions = {
  publicUrl: string
  requestId: string
  /** Further headers; those of the problem override them. */
  headers?: Record<string, string>
}

/** Returns an error as `application/problem+json` (RFC 9457). */
export const toProblemResult = (
  problem: Problem,
  { publicUrl, requestId, headers = {} }: ResponseOptions,
): CallResponse & { problem: ProblemDocument } => {
  const document = toProblemDocument(problem, publicUrl, requestId)
  return {
    status: problem.status,
    body: JSON.stringify(document),
    problem: document,
    headers: {
      'Request-Id': requestId,
      'Api-Version': currentVersion,
      ...headers,
      ...problem.headers,
      'Content-Type': 'application/problem+json',
    },
  }
}

/** The same as a `Response`. */
export const toProblemResponse = (problem: Problem, options: ResponseOptions): Response => {
  const { status, headers, body } = toProblemResult(problem, options)
  return new Response(body, { status, headers })
}
