// TensorFlow Serving walks JSON recursively: deep nesting exhausts its stack.
const DEEPEST = 8;
const TOKENS = /"(?:[^"\\]|\\.)*"|[[{]|[\]}]/g;

function isDeep(text) {
    let depth = 0;
    let token;
    TOKENS.lastIndex = 0;
    while ((token = TOKENS.exec(text)) !== null) {
        if (token[0] === '[' || token[0] === '{') {
            depth += 1;
        } else if (token[0] === ']' || token[0] === '}') {
            depth -= 1;
        }
        if (depth > DEEPEST) {
            return true;
        }
    }
    return false;
}

function checked(request) {
    const text = request.requestText || '';
    request.internalRedirect(isDeep(text) ? '@too_deep' : '@checked');
}

export default {checked};
