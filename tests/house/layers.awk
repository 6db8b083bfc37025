# The layers of lib/, and what may see what; includes.sh reads includes by it, layers.sh calls.
function layer_of(folder) { return folder in layer ? layer[folder] : -1 }
function may_see(from, to) {
    if (layer_of(from) < 0 || layer_of(to) < 0) return 0
    if (to != from && layer_of(to) >= layer_of(from)) return 0
    return !(from in only) || index(only[from], " " to " ") > 0
}
BEGIN {
    layer["base"] = 0; layer["solve"] = 1; layer["data"] = 1; layer["cost"] = 2
    layer["parallel"] = 3; layer["simulate"] = 3; layer["pack"] = 4; layer["schedule"] = 4
    layer["step"] = 4; layer["pipeline"] = 4; layer["tasks"] = 4; layer["epoch"] = 5; layer["vlm"] = 5; layer["io"] = 6
    only["io"] = " io vlm simulate cost data solve base "; # files know no planner but the one whose plans they replay
    only["simulate"] = " simulate data cost solve base "
    layer["glpk"] = 1; only["glpk"] = " glpk "
    only["solve"] = " solve base "; only["data"] = " data base "
}
